import torch, math
from dataclasses import dataclass, field
from typing import Optional, Union

@dataclass
class Leaf:
    counts: dict
    @property
    def value(self): return max(self.counts, key=lambda k: (self.counts[k], str(k)))
@dataclass
class Split:
    feat: int
    thr: float
    left: 'Union[Leaf, Split]' = field(repr=False)
    right: 'Union[Leaf, Split]' = field(repr=False)
    def __iter__(self): yield self.left; yield self.right

def gini(y):
    if not len(y): return 0.0
    _, n = y.unique(return_counts=True)
    p = n / len(y)
    return float(1 - (p * p).sum())

def build(X, y, depth, minleaf=1):
    cls, n = y.unique(return_counts=True)
    leaf = Leaf(dict(zip(cls.tolist(), n.tolist())))
    if depth == 0 or len(cls) <= 1: return leaf
    best = None
    for f in range(X.shape[1]):
        vals = X[:, f].unique()
        for thr in ((vals[1:] + vals[:-1]) / 2).tolist():
            m = X[:, f] <= thr
            if min(m.sum(), (~m).sum()) < minleaf: continue
            g = (m.float().mean() * gini(y[m]) + (~m).float().mean() * gini(y[~m])).item()
            if best is None or g < best[0]: best = g, f, thr, m
    if not best or best[0] >= gini(y): return leaf
    _, f, thr, m = best
    return Split(f, thr, build(X[m], y[m], depth - 1, minleaf), build(X[~m], y[~m], depth - 1, minleaf))

def predict(t, row):
    while True:
        match t:
            case Leaf(counts=c): return t.value, sum(c.values())
            case Split(f, thr, l, r): t = l if row[f] <= thr else r
            case _: raise TypeError(type(t))

def render(t, ind=0):
    pad = '│ ' * ind
    if isinstance(t, Leaf): return f'{pad}→ {t.value} {t.counts}'
    return '\n'.join([f'{pad}x{t.feat} <= {t.thr:.2f}', *(render(c, ind + 1) for c in t)])

def prune(t):
    if isinstance(t, Split):
        t.left, t.right = map(prune, t)
        if all(isinstance(c, Leaf) for c in t) and t.left.value == t.right.value:
            return Leaf({k: t.left.counts.get(k, 0) + t.right.counts.get(k, 0) for k in sorted({**t.left.counts, **t.right.counts})})
    return t

def program(X, y, depth, minleaf):
    t = build(X, y, depth, minleaf)
    print(render(t) if depth < 3 else repr(t))
    try: preds = [predict(t, r) for r in X]
    except ValueError as e: return str(e), t
    p = prune(t)
    return preds, render(p), p is t, torch.tensor([v for v, _ in preds]) == y, gini(y), repr(p)[:60]

CALLS = ["(torch.tensor([[0.,1],[1,1],[2,0],[3,0]]), torch.tensor([0,0,1,1]), 2, 1)", "(torch.tensor([[0.],[1],[2],[3]]), torch.tensor([0,1,0,1]), 3, 1)", "(torch.ones(2,1), torch.tensor([0,1]), 2, 1)", "(torch.zeros(0,1), torch.zeros(0), 2, 1)", "(torch.arange(6.)[:,None], torch.tensor([1,1,1,1,0,0]), 5, 3)"]
