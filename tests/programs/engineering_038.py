import torch
from dataclasses import dataclass
from typing import Union

@dataclass
class Leaf:
    value: torch.Tensor
@dataclass
class Split:
    feature: int
    threshold: float
    left: Union['Split', Leaf]
    right: Union['Split', Leaf]

def gini(y): 
    p = y.mean() if len(y) else torch.tensor(0.)
    return 2 * p * (1 - p)

def build(x, y, depth=0, max_depth=2):
    if depth == max_depth or y.unique().numel() < 2:
        return Leaf(y.mean() if y.numel() else torch.tensor(0.))
    best = None
    for f in range(x.shape[1]):
        for t in x[:, f].unique()[:-1].tolist():
            m = x[:, f] <= t
            score = (m.float().mean() * gini(y[m]) + (~m).float().mean() * gini(y[~m])).item()
            if best is None or score < best[0]:
                best = score, f, t, m
    if not best:
        return Leaf(y.mean())
    _, f, t, m = best
    return Split(f, t, build(x[m], y[m], depth + 1, max_depth), build(x[~m], y[~m], depth + 1, max_depth))

def predict(node, row):
    match node:
        case Leaf(value=v):
            return v
        case Split(feature=f, threshold=t, left=l, right=r):
            return predict(l if row[f] <= t else r, row)

def depth(node):
    return 1 + max(map(depth, (node.left, node.right))) if isinstance(node, Split) else 0

def program(x, y, max_depth):
    tree = build(x, y, max_depth=max_depth)
    pred = torch.stack([predict(tree, r) for r in x])
    acc = ((pred > 0.5) == (y > .5)).float().mean()
    if acc < 1:
        print('impure', acc.item())
    return tree, pred, acc, depth(tree)

CALLS = ["(torch.arange(8.).view(4,2), torch.tensor([0.,0.,1.,1.]), 2)", "(torch.tensor([[0.,0],[0,1],[1,0],[1,1]]), torch.tensor([0.,1,1,0]), 2)", "(torch.ones(2,1), torch.tensor([0.,1.]), 3)", "(torch.arange(3.)[:,None], torch.ones(3), 1)"]
