import torch, math
from functools import total_ordering

@total_ordering
class Q:
    __slots__ = ('v', 'dims', '__weakref__')
    def __init__(self, v, **dims):
        self.v = v
        self.dims = {k: d for k, d in sorted(dims.items()) if d}
    def _chk(self, o):
        if not isinstance(o, Q): o = Q(o)
        if o.dims != self.dims: raise TypeError(f'{self.unit} vs {o.unit}')
        return o
    @property
    def unit(self): return '·'.join(k if d == 1 else f'{k}^{d}' for k, d in self.dims.items()) or '1'
    def __add__(self, o): return Q(self.v + self._chk(o).v, **self.dims)
    __radd__ = __add__
    def __neg__(self): return Q(-self.v, **self.dims)
    def __sub__(self, o): return self + -o
    def __mul__(self, o):
        if not isinstance(o, Q): return Q(self.v * o, **self.dims)
        d = dict(self.dims)
        for k, n in o.dims.items(): d[k] = d.get(k, 0) + n
        return Q(self.v * o.v, **d)
    __rmul__ = __mul__
    def __pow__(self, n): return Q(self.v ** n, **{k: d * n for k, d in self.dims.items()})
    def __truediv__(self, o): return self * (o ** -1 if isinstance(o, Q) else 1 / o)
    def __eq__(self, o): return isinstance(o, Q) and self.dims == o.dims and bool((torch.as_tensor(self.v) == torch.as_tensor(o.v)).all())
    def __lt__(self, o): return bool(torch.as_tensor(self.v < self._chk(o).v).all())
    def __hash__(self): return hash((round(float(torch.as_tensor(self.v).sum()), 6), self.unit))
    def __round__(self, n=0): return Q(torch.round(self.v, decimals=n) if isinstance(self.v, torch.Tensor) else round(self.v, n), **self.dims)
    def __format__(self, spec):
        n, _, u = spec.partition('|')
        v = self.v.tolist() if isinstance(self.v, torch.Tensor) else self.v
        return (f'[{", ".join(format(i, n) for i in v)}]' if isinstance(v, list) else format(v, n)) + (' ' + self.unit if u != 'nou' else '')
    def __bool__(self): return bool(torch.as_tensor(self.v).any())
    def __abs__(self): return Q(abs(self.v), **self.dims)

def program(dist, t):
    d, s = Q(dist, m=1), Q(t, s=1)
    out = []
    try: v = d / s
    except ZeroDivisionError as e: print('div', e); v = d * Q(1, s=-1)
    out.append(f'{v:.2f} / {v:08.3f|nou}')
    try: d + s
    except TypeError as e: out.append(str(e))
    try: d + 1
    except TypeError as e: out.append(str(e))
    a = v * s
    out += [round(v, 1), a == d, d < d * 2, d >= d, sum([v, v], Q(0, m=1, s=-1)), bool(d), not d, abs(-d)]
    if v > Q(1, m=1, s=-1): out.append('fast')
    uniq = {d, Q(dist, m=1), s, d * 1}
    return [o if not isinstance(o, Q) else (o.v, o.unit) for o in out], len(uniq), (d * d / d).unit, max([d, d * 3, d * 2]).v

CALLS = ["(torch.tensor([3.,6.]), 2)", "(5.0, 2.5)", "(torch.tensor([0.,0.]), 4.0)", "(7, 0)", "(torch.tensor([1.,-1.]), torch.tensor([2.,4.]))", "(torch.zeros(0), 1)"]
