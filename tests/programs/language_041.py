import torch
from functools import lru_cache, cached_property, cache

@lru_cache(maxsize=3)
def kernel(size, sigma=1.0):
    r = torch.arange(size) - (size - 1) / 2
    k = torch.exp(-r ** 2 / (2 * sigma ** 2))
    return k / k.sum()

class Resampler:
    @lru_cache(maxsize=2)
    def table(self, n):
        self.misses = getattr(self, 'misses', 0) + 1
        return torch.linspace(0, 1, n)

    @classmethod
    @cache
    def default(cls): return cls()

    @staticmethod
    @cache
    def ident(*a, **k): return a, tuple(k.items())

def program(x, sizes):
    kernel.cache_clear()
    Resampler.table.cache_clear()
    outs = []
    for s in sizes:
        try:
            k = kernel(s) if s % 2 else kernel(size=s, sigma=2.0)
        except (TypeError, RuntimeError) as e:
            outs.append(type(e).__name__)
            continue
        y = torch.nn.functional.conv1d(x[None, None], k[None, None], padding=s // 2)[0, 0]
        outs.append(y)
    r = Resampler.default()
    r.misses = 0
    tabs = [r.table(n) for n in (2, 3, 2, 4, 3, 2)]
    if len(sizes) > 2:
        print(kernel.cache_info())
    try:
        kernel([1])
    except TypeError as e:
        outs.append(str(e))
    return outs, kernel.cache_info(), r.misses, tabs[0] is tabs[2], tabs[0] is tabs[5], Resampler.table.cache_info().hits, Resampler.default() is r, Resampler.ident(1, 1.0, a=2), kernel.cache_parameters(), kernel.__wrapped__(2).sum()

CALLS = ["(torch.arange(6.), [3, 3, 5])", "(torch.ones(4), [1, 2, 3, 4, 1])", "(torch.ones(4), [])", "(torch.ones(3), [-1, 1])", "(torch.arange(6.), [3, 5, 7, 9, 3])"]
