import torch
from typing import Protocol, runtime_checkable

@runtime_checkable
class Transform(Protocol):
    def fit(self, x): ...
    def apply(self, x): ...

class Standard:
    def fit(self, x): self.mean, self.std = x.mean(0), x.std(0).clamp(min=1e-6); return self
    def apply(self, x): return (x - self.mean) / self.std
class PCA:
    def __init__(self, k): self.k = k
    def fit(self, x):
        c = x.T @ x / max(len(x) - 1, 1)
        vals, vecs = torch.linalg.eigh(c)
        self.ratio = (vals.flip(0) / vals.sum())[:self.k]
        self.comps = vecs.flip(1)[:, :self.k]
        return self
    def apply(self, x): return (x @ self.comps).abs()
class Clip:
    def apply(self, x): return x.clamp(-1, 1)

class Pipeline:
    def __init__(self, *steps):
        for s in steps:
            if not isinstance(s, Transform): raise TypeError(f'{type(s).__name__} is no transform')
        self.steps = steps
    def fit(self, x):
        for s in self.steps:
            x = s.fit(x).apply(x)
            if x.isnan().any(): print('nan after', type(s).__name__); x = x.nan_to_num()
        return x
    def __getitem__(self, i): return Pipeline(*self.steps[i]) if isinstance(i, slice) else self.steps[i]

def program(x, k, clip=False):
    try:
        p = Pipeline(Standard(), PCA(k), *([Clip()] if clip else []))
    except TypeError as e: return str(e)
    out = p.fit(x)
    need = next((i for i, r in enumerate(p[1].ratio.cumsum(0).tolist(), 1) if r > .9), None)
    return out, p[1].ratio, need, p[:1].fit(x), p[-1] is p.steps[1], vars(p[0])

CALLS = ["(torch.tensor([[1.,2],[3,4],[5,7]]), 1)", "(torch.tensor([[1.,2],[3,4],[5,7]]), 1)", "(torch.tensor([[1.,2,0],[3,9,1],[5,7,5]]), 2)", "(torch.ones(1,2), 1)", "(torch.ones(1,2), 1, True)"]
