import torch
from torch import nn

class Head(nn.Module):
    _cache = {}
    def __new__(cls, d, k, share=True):
        if share and (d, k) in cls._cache: return cls._cache[d, k]
        self = super().__new__(cls)
        if share: cls._cache[d, k] = self
        return self
    def __init__(self, d, k, share=True):
        if 'fc' in self.__dict__.get('_modules', {}): return
        super().__init__()
        self.fc = nn.Linear(d, k)
        nn.init.constant_(self.fc.weight, .1); nn.init.zeros_(self.fc.bias)
    def forward(self, x): return self.fc(x)

def program(x, k, steps):
    Head._cache.clear()
    a, b, c = Head(x.shape[1], k), Head(x.shape[1], k), Head(x.shape[1], k, share=False)
    for s in range(steps):
        loss = (a(x) - 1).square().sum() + (c(x) + 1).square().sum()
        loss.backward()
        with torch.no_grad():
            for p in {*a.parameters(), *b.parameters(), *c.parameters()}: p -= .01 * p.grad; p.grad = None
        if loss < 1: print('small', s)
    return a(x), a is b, a is c, c(x), len(Head._cache), loss if steps else None

CALLS = ["(torch.eye(2), 1, 3)", "(torch.eye(2), 1, 3)", "(torch.ones(1,3), 2, 2)", "(torch.eye(2), 0, 0)"]
