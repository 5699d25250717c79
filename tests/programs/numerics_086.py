import torch
import operator

class Lazy:
    ops = 0
    def __init__(self, fn, *args): self.fn, self.args, self._v = fn, args, None
    def force(self):
        if self._v is None:
            Lazy.ops += 1
            self._v = self.fn(*[a.force() if isinstance(a, Lazy) else a for a in self.args])
        return self._v
    @classmethod
    def const(cls, v): return cls(lambda: v)
    def __bool__(self): return bool(self.force().sum() > 0)
    def __getattr__(self, name):
        if name.startswith('__') or name == 'shape_hint': raise AttributeError(name)
        return lambda *a: Lazy(lambda t, *b: getattr(t, name)(*b), self, *a)
    def __index__(self): return int(self.force().sum())

for _op in ('add', 'mul', 'sub', 'matmul', 'lt'):
    setattr(Lazy, f'__{_op}__', lambda self, o, f=getattr(operator, _op): Lazy(f, self, o))

def program(x, k):
    Lazy.ops = 0
    a = Lazy.const(x)
    b = (a * 2 + a).clamp(-1, k)
    unused = b @ b
    before = Lazy.ops
    if b - 1:
        print('positive', Lazy.ops)
        c = b.sum()
    else:
        c = (a < 0).any()
    items = list(range(10))[Lazy.const(x).abs().sum():]
    return c.force(), b.force() is b.force(), before, Lazy.ops, hasattr(a, 'shape_hint'), items, unused._v is None

CALLS = ["(torch.ones(2,2), 5)", "(torch.ones(2,2), 5)", "(-torch.ones(3), 1)", "(torch.zeros(0), 1)", "(torch.ones(1), None)", "(torch.ones(1), 'a')"]
