import torch
from functools import lru_cache

@lru_cache(maxsize=None)
def window(n, kind='hann'):
    k = torch.arange(n) / max(n - 1, 1)
    return {'hann': lambda: 0.5 - 0.5 * torch.cos(2 * torch.pi * k), 'tri': lambda: 1 - (2 * k - 1).abs()}[kind]()

@lru_cache(maxsize=2)
def dct_matrix(n):
    k = torch.arange(n, dtype=torch.float)
    m = torch.cos(torch.pi / n * (k[None] + .5) * k[:, None]) * (2 / n) ** .5
    m[0] /= 2 ** .5
    return m

def compress(x, keep):
    m = dct_matrix(len(x))
    c = m @ x
    th = c.abs().sort(descending=True).values[min(keep, len(c)) - 1].item()
    c[c.abs() < th] = 0
    return dct_matrix(len(x)).T @ c, int((c != 0).sum())

def program(x, n, keep, kind='hann'):
    dct_matrix.cache_clear(); window.cache_clear()
    blocks = []
    used = None
    for start in range(0, len(x) - n + 1, n):
        w = window(n, kind)
        used = used if used is not None else w
        y, nz = compress(x[start:start + n] * w, keep)
        err = (y - x[start:start + n]).norm().item()
        if err > 1: print('block', start, 'is bad')
        blocks.append((y, nz, err))
    hits = dct_matrix.cache_info()
    return blocks, hits, window.cache_info().hits, used is window(n, kind) if used is not None else None

CALLS = ["(torch.arange(8.).cos(), 4, 2)", "(torch.arange(8.).cos(), 4, 2)", "(torch.arange(9.).sin(), 3, 1, 'tri')", "(torch.ones(5), 5, 9)", "(torch.ones(2), 3, 1)", "(torch.ones(2), 1, 1, 'x')"]
