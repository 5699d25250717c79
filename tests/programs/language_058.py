import torch
import math

class Value:
    __slots__ = ('mean', 'var')
    def __init__(self, mean, var=0.0): self.mean, self.var = mean, var
    def __add__(self, o): return Value(self.mean + o.mean, self.var + o.var) if isinstance(o, Value) else Value(self.mean + o, self.var)
    __radd__ = __add__
    def __rtruediv__(self, o): return Value(o / self.mean, self.var)
    def __rsub__(self, o): return Value(o - self.mean, self.var)
    def __rmatmul__(self, o): return Value(o @ self.mean, self.var)
    def __rpow__(self, o): return ('rpow', o)
    def __lt__(self, o): return NotImplemented
    def __gt__(self, o): return 'gt'
    def __float__(self): return float(self.mean.mean())
    def __int__(self): return 7
    def __floor__(self): return 'floor'
    def __trunc__(self): return 9
    def __ceil__(self): return math.ceil(float(self))
    def __complex__(self): return complex(float(self), 1)
    def __abs__(self): return Value(self.mean.abs(), self.var)
    def __format__(self, s): return f'{float(self):{s or ".2f"}}±{self.var:.1f}'
    def __bytes__(self): return b'val'
    def __sizeof__(self): return 1

def attempt(f, *a):
    try:
        r = f(*a)
    except (TypeError, ValueError, RuntimeError) as e:
        return type(e).__name__, str(e)[:45]
    return (r.mean, r.var) if isinstance(r, Value) else r

def program(x, k):
    v = Value(x, 0.5)
    out = [attempt(f) for f in (
        lambda: v + v, lambda: k + v, lambda: k - v, lambda: x @ v, lambda: 2 ** v, lambda: v < v, lambda: 1 < v,
        lambda: sum([v, v]), lambda: math.floor(v), lambda: math.ceil(v), lambda: math.trunc(v), lambda: int(v),
        lambda: complex(v), lambda: bytes(v), lambda: abs(v), lambda: -v, lambda: v[0], lambda: v(), lambda: len(v),
        lambda: f'{v}|{v:.0f}|{v!s:.6}', lambda: math.sqrt(v), lambda: [*v], lambda: round(v), lambda: 1 / v, lambda: x / v, lambda: max(v, v) is v)]
    if not isinstance(out[0][0], str):
        print('sum', out[0][0].sum().item())
    return out, x.relu()

CALLS = ["(torch.arange(1., 4), 2)", "(torch.ones(1), torch.ones(1))", "(torch.zeros(2, 2), 'a')", "(torch.tensor([2]), 1.5)", "(torch.ones(2), None)"]
