import torch, random
from collections import Counter

class Stump:
    def fit(self, X, y, w):
        self.best = (float('inf'),)
        for j in range(X.shape[1]):
            for th in X[:, j].unique().tolist():
                pred = torch.where(X[:, j] > th, 1., -1.)
                for s in (1, -1):
                    err = w[(s * pred) != y].sum().item()
                    if err < self.best[0] - 1e-6: self.best = (err, j, th, s)
        return self
    def __call__(self, X): _, j, th, s = self.best; return s * torch.where(X[:, j] > th, 1., -1.)
    def __repr__(self): return f'x{self.best[1]}>{self.best[2]:g}:{self.best[3]:+d}'

class Ensemble:
    def __init__(self, mode): self.mode, self.members = mode, []
    def __iadd__(self, m): self.members.append(m if isinstance(m, tuple) else (1.0, m)); return self
    def __len__(self): return len(self.members)
    def __call__(self, X):
        match self.mode, self.members:
            case _, []: raise RuntimeError('nothing fitted')
            case 'vote', ms:
                votes = [Counter(col).most_common(1)[0][0] for col in zip(*(m(X).tolist() for _, m in ms))]
                return torch.tensor(votes)
            case 'weighted' | 'boost', ms: return torch.sign(sum(a * m(X) for a, m in ms))
            case other, _: raise ValueError(other)

def boost(X, y, rounds):
    ens = Ensemble('boost'); n = len(y); w = torch.full((n,), 1 / max(n, 1)); trace = []
    for r in range(rounds):
        s = Stump().fit(X, y, w)
        err = max(s.best[0], 1e-6)
        if err >= 0.5: trace.append('weak'); break
        a = 0.5 * torch.log(torch.tensor((1 - err) / err))
        ens += (a, s)
        w = w * torch.exp(-a * y * s(X)); w = w / w.sum()
        trace.append(repr(s))
    return ens, w, trace

def bag(X, y, k, seed):
    rng = random.Random(seed); ens = Ensemble('vote')
    for _ in range(k):
        idx = torch.tensor(rng.choices(range(len(y)), k=len(y)))
        ens += Stump().fit(X[idx], y[idx], torch.ones(len(y)))
    return ens

def program(X, y, rounds, seed=0):
    ens, w, trace = boost(X, y, rounds)
    out = []
    for name, e in (('boost', ens), ('bag', None), ('empty', Ensemble('vote')), ('odd', Ensemble('zzz'))):
        try:
            if e is None: e = bag(X, y, 3, seed)
            if name == 'odd': e += ens.members[0][1] if ens else None
            p = e(X)
            acc = (p == y).float().mean()
            out.append((name, p, acc, len(e)))
            if acc == 1: print(name, 'perfect')
        except (RuntimeError, ValueError, IndexError, TypeError) as err: out.append((name, f'{type(err).__name__}: {err}'[:50]))
    return out, w, trace

CALLS = ["(torch.tensor([[0.,1],[1,0],[2,1],[3,3]]), torch.tensor([-1.,-1,1,1]), 3)", "(torch.tensor([[0.],[1],[2],[3]]), torch.tensor([1.,-1,-1,1]), 4, 5)", "(torch.zeros(2,1), torch.tensor([1.,-1]), 2)", "(torch.zeros(0,1), torch.zeros(0), 1)", "(torch.ones(3,2), torch.ones(3), 0)"]
