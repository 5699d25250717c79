import torch
from torch import nn
import numpy as np
from typing import NamedTuple

class Fold(NamedTuple):
    train: list
    val: list
    @property
    def sizes(self):
        return len(self.train), len(self.val)

def folds(n, k):
    order = np.random.RandomState(0).permutation(n)
    for part in np.array_split(order, k):
        rest = [int(i) for i in order if i not in part]
        yield Fold(rest, part.tolist())

def fit(x, y, lam):
    d = x.shape[1]
    return torch.linalg.solve(x.T @ x + lam * torch.eye(d), x.T @ y)

def program(x, y, k, lams=(0.1, 1.0)):
    table = {}
    for lam in lams:
        scores = []
        for fold in folds(len(x), k):
            if not fold.train:
                continue
            w = fit(x[fold.train], y[fold.train], lam)
            err = (x[fold.val] @ w - y[fold.val]).square().mean()
            scores.append(err.item())
            assert sum(fold.sizes) == len(x)
        table[lam] = (float(np.mean(scores)), np.std(scores)) if scores else None
    best = min((k for k in table if table[k]), key=lambda k: table[k][0], default=None)
    print('best', best)
    return table, best, fit(x, y, best) if best else None, np.array(list(table))

CALLS = ["(torch.arange(12.).reshape(6,2).sin(), torch.arange(6.), 3)", "(torch.arange(12.).reshape(6,2).sin(), torch.arange(6.), 2)",
 "(torch.eye(4), torch.ones(4), 4, [0.5])", "(torch.eye(1), torch.ones(1), 1)", "(torch.eye(2), torch.ones(2), 5)"]
