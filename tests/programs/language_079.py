import torch
from functools import lru_cache, cache, cached_property, partial

class Positional:
    """cached tables keyed by (length, dim), clears itself, wraps and unwraps"""
    built = 0
    def __init__(self, base=100.0):
        self.base = base
        self.get = lru_cache(maxsize=None)(self._build)
        self.small = lru_cache(maxsize=1, typed=True)(lambda n: torch.full((2,), n))
        self.none = lru_cache(maxsize=0)(partial(self._build, 2))
    def _build(self, n, d):
        Positional.built += 1
        if d % 2: raise ValueError(f'odd {d}')
        f = self.base ** (-torch.arange(0, d, 2) / d)
        a = torch.arange(n)[:, None] * f
        return torch.cat([a.sin(), a.cos()], -1)
    @cached_property
    def default(self): return self.get(2, 2)

@cache
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)

def program(x, lens):
    Positional.built = 0
    p = Positional()
    outs = []
    for n in lens:
        try:
            outs.append(x[:n] + p.get(n, x.shape[1])[:len(x)])
        except (ValueError, RuntimeError) as e:
            outs.append(type(e).__name__)
            print(p.get.cache_info())
    s = [p.small(v) for v in (1, 1.0, 1, True)]
    z = [p.none(2) is p.none(2), p.none.cache_info()]
    a = p.default is p.get(2, 2)
    p.get.cache_clear()
    b = p.default is p.get(2, 2), p.default is p.default
    fib.cache_clear()
    f = fib(10), fib.cache_info()
    return outs, [t.dtype for t in s], p.small.cache_info(), z, a, b, f, Positional.built

CALLS = ["(torch.ones(3, 2), [3, 2, 3])", "(torch.ones(2, 3), [2, 2])", "(torch.zeros(0, 4), [0, 1])", "(torch.ones(4, 4), [])", "(torch.arange(4.).reshape(2, 2), [5, 2])"]
