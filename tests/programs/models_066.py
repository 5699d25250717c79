import torch
from functools import cached_property, total_ordering, partialmethod
@total_ordering
class Series:
    def __init__(self, data, name='s'): self.data, self.name = data, name
    @cached_property
    def stats(self): print('stats', self.name); return {'mean': self.data.mean().item(), 'n': len(self.data)}
    def _roll(self, op, n): return Series(torch.stack([getattr(w, op)() for w in self.data.unfold(0, n, 1)]) if len(self.data) >= n else self.data[:0], f'{self.name}.{op}{n}')
    rmean = partialmethod(_roll, 'mean'); rmax = partialmethod(_roll, 'max', n=2)
    def __eq__(self, o): return self.stats['mean'] == o.stats['mean']
    def __lt__(self, o): return self.stats['mean'] < o.stats['mean']
    def __getitem__(self, k):
        if isinstance(k, str): return self.stats[k]
        if isinstance(k, Series): return Series(self.data[k.data.bool()], self.name)
        return Series(self.data[k], self.name) if isinstance(k, slice) else self.data[k]
    def __gt__(self, o): return Series(self.data > o, 'mask') if not isinstance(o, Series) else not (self < o or self == o)
    def __format__(self, f): return f'<{self.name}:' + ','.join(format(v, f) for v in self.data.tolist()) + '>'
def program(x, y, n):
    a, b = Series(x, 'a'), Series(y, 'b')
    ordered = [s.name for s in sorted([a, b, a.rmean(n), b.rmax()])]
    m = a > 1
    try: miss = a['median']
    except KeyError as e: miss = e.args
    del a.stats
    return ordered, m.data, a[m].data, a[1:].data, a >= b, a > b, f'{a.rmean(n):.2f}', miss, 'stats' in vars(a), a['n'], a[-1], max(a, b).name
CALLS = ["(torch.tensor([1.,2.,3.]), torch.tensor([2.,2.]), 2)", "(torch.ones(1), torch.zeros(4), 3)", "(torch.arange(5.), torch.arange(5.), 1)", "(torch.zeros(0), torch.zeros(2), 1)"]
