import torch
from functools import cmp_to_key

def kmeans_pp(x, k, g):
    centers = [x[torch.randint(len(x), (), generator=g)]]
    while len(centers) < k:
        d = torch.cdist(x, torch.stack(centers)).min(1).values.square()
        if d.sum() == 0:
            centers.append(x[0])
            continue
        centers.append(x[torch.multinomial(d, 1, generator=g).item()])
    return torch.stack(centers)

class KMeans:
    def __init__(self, k, max_iter=10, tol=1e-4, seed=0):
        vars(self).update({n: v for n, v in locals().items() if n != 'self'})
    def fit(self, x):
        g = torch.Generator().manual_seed(self.seed)
        c = kmeans_pp(x, self.k, g)
        for self.n_iter_ in range(1, self.max_iter + 1):
            labels = torch.cdist(x, c).argmin(1)
            new = c.clone()
            for j in range(self.k):
                if (m := labels == j).any():
                    new[j] = x[m].mean(0)
            shift = (new - c).norm().item()
            c = new
            if shift < self.tol: break
        self.centers_, self.labels_ = c, labels
        self.inertia_ = sum((x[labels == j] - c[j]).square().sum().item() for j in range(self.k))
        return self
    def __repr__(self):
        return f"KMeans({', '.join(f'{k}={v}' for k, v in vars(self).items() if not k.endswith('_'))})"

def program(x, k, **kw):
    km = KMeans(k, **kw).fit(x)
    order = sorted(range(k), key=cmp_to_key(lambda a, b: -1 if km.centers_[a].sum() < km.centers_[b].sum() else 1))
    print(km)
    sizes = {j: int((km.labels_ == j).sum()) for j in order}
    return km.centers_[order], km.labels_, km.inertia_, km.n_iter_, sizes, sorted(vars(km))

CALLS = ["(torch.tensor([[0.,0],[0,1],[5,5],[5,6]]), 2)", "(torch.tensor([[0.,0],[0,1],[5,5],[5,6]]), 3)", "(torch.ones(3,2), 2)", "(torch.ones(1,1), 0)", "(torch.zeros(0,1), 1)"]
