import torch
from functools import lru_cache

@lru_cache(None)
def kernel(n):
    k = torch.ones(n)
    return k / k.sum()

class Smoother:
    def __init__(self, n): self.k = kernel(n)
    def __call__(self, x): return torch.conv1d(x[None, None], self.k[None, None], padding='same')[0, 0]
    def sharpen(self):
        self.k[len(self.k) // 2] += 1
        return self

def program(x, n):
    kernel.cache_clear()
    a = Smoother(n)
    out = a(x)
    if out.std() > .5: print('rough')
    b = Smoother(n).sharpen()
    return out, a(x), b(x), a.k is b.k

CALLS = ["(torch.arange(5.), 3)", "(torch.arange(5.), 3)", "(torch.arange(6.), 2)", "(torch.ones(6), 5)", "(torch.ones(1), 0)"]
