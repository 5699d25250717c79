import torch

class KMeans:
    def __init__(self, k, seed=0, maxit=20):
        self.k, self.maxit = k, maxit
        self.gen = torch.Generator().manual_seed(seed)
        self.history = []
    def init(self, X):
        if len(X) < self.k: raise ValueError(f'{len(X)} points for {self.k} clusters')
        centers = [X[torch.randint(len(X), (1,), generator=self.gen).item()]]
        while len(centers) < self.k:
            d = torch.cdist(X, torch.stack(centers)).min(1).values ** 2
            if d.sum() == 0: centers.append(X[len(centers)]); continue
            centers.append(X[torch.multinomial(d, 1, generator=self.gen).item()])
        return torch.stack(centers)
    def fit(self, X):
        C = self.init(X)
        for it in range(self.maxit):
            lab = torch.cdist(X, C).argmin(1)
            new = C.clone()
            for j in range(self.k):
                mask = lab == j
                if mask.any(): new[j] = X[mask].mean(0)
                else: self.history.append(f'empty {j}')
            shift = (new - C).norm().item()
            self.history.append(round(shift, 4)); C = new
            if shift < 1e-4: break
        else: self.history.append('not converged')
        self.C, self.labels_ = C, lab
        return self
    @property
    def inertia(self):
        try: return self._inertia
        except AttributeError: raise RuntimeError('score() first') from None
    def score(self, X):
        self._inertia = ((X - self.C[torch.cdist(X, self.C).argmin(1)]) ** 2).sum(); return self

def silhouette(X, lab):
    s = []
    D = torch.cdist(X, X)
    for i in range(len(X)):
        same = (lab == lab[i]) & (torch.arange(len(X)) != i)
        a = D[i][same].mean() if same.any() else torch.zeros(())
        b = min((D[i][lab == o].mean() for o in lab.unique().tolist() if o != lab[i]), default=a)
        s.append(((b - a) / torch.maximum(a, b)).nan_to_num())
    return torch.stack(s).mean()

def program(X, k, seed):
    km = KMeans(k, seed)
    try: km.inertia
    except RuntimeError as e: msg = str(e)
    try: km.fit(X).score(X)
    except ValueError as e: print(e); return msg, e.args, X.sum(0), vars(km).keys() - {'gen'} == {'k', 'maxit', 'history'}
    order = km.C[:, 0].argsort()
    groups = {int(c): [i for i, l in enumerate(km.labels_.tolist()) if l == c] for c in order}
    return msg, km.C[order], groups, km.inertia, km.history, silhouette(X, km.labels_) if k > 1 else None

CALLS = ["(torch.tensor([[0.,0],[0,1],[5,5],[6,5],[0,.5]]), 2, 1)", "(torch.ones(3,2), 2, 0)", "(torch.zeros(1,2), 3, 0)", "(torch.arange(8.)[:,None], 3, 4)", "(torch.eye(3), 1, 2)"]
