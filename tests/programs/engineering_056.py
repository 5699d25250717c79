import torch
from functools import singledispatch, singledispatchmethod, total_ordering, cached_property, partialmethod

@total_ordering
class Version:
    def __init__(self, s): self.parts = tuple(map(int, s.split('.')))
    def __eq__(self, o): return self.parts == o.parts if isinstance(o, Version) else NotImplemented
    def __lt__(self, o): return self.parts < o.parts
    def __hash__(self): return hash(self.parts)
    def __repr__(self): return 'v' + '.'.join(map(str, self.parts))

@singledispatch
def to_tensor(x): raise TypeError(type(x).__name__)
@to_tensor.register
def _(x: torch.Tensor): return x.float()
@to_tensor.register(int)
@to_tensor.register(float)
def _(x): return torch.tensor([float(x)])
@to_tensor.register(list)
def _(x): return torch.cat([to_tensor(i) for i in x]) if x else torch.zeros(0)

class Feature:
    def __init__(self, raw): self.raw = raw; self.n = 0
    @cached_property
    def tensor(self):
        self.n += 1
        return to_tensor(self.raw)
    @cached_property
    def norm(self): return self.tensor.norm().item()
    def scale(self, k, bias=0): return self.tensor * k + bias
    double = partialmethod(scale, 2)
    @singledispatchmethod
    def cmp(self, o): return NotImplemented
    @cmp.register
    def _(self, o: str): return Version(o) > Version('1.2')

def program(raw, ver):
    f = Feature(raw)
    try:
        if f.norm > 1: print('norm', round(f.norm, 3))
        y = f.double(bias=f.norm)
    except TypeError as e:
        return str(e), f.n, 'tensor' in vars(f)
    f.tensor.add_(1)
    vs = sorted({Version(v) for v in ver})
    newest = max(vs, default=None)
    del f.norm
    return y, f.norm, f.n, vs, newest is not None and newest >= Version('2.0'), f.cmp('1.10'), f.cmp(3), Version('1') == 1

CALLS = ["([1, 2.5, torch.ones(2, dtype=torch.int64)], ['1.10', '1.9', '2.0', '1.9'])", "(torch.zeros(2), [])", "(['x'], ['1'])", "(3, ['0.1'])", "([True, []], ['1'])"]
