import torch
from enum import Enum, EnumMeta, Flag, StrEnum, auto, member, nonmember
import enum

class CiMeta(EnumMeta):
    def __getitem__(cls, n): return super().__getitem__(n.upper())
    def __contains__(cls, v): return isinstance(v, str) and v.upper() in cls.__members__
    def __call__(cls, v, *a, **k):
        if isinstance(v, str) and not a: v = v.lower()
        return super().__call__(v, *a, **k)

class Dtype(Enum, metaclass=CiMeta):
    FLOAT = 'float'
    HALF = 'half'
    INT = 'int'
    I32 = 'int'
    DOUBLE = 'double'
    @property
    def torch(self): return getattr(torch, self.value)
    @classmethod
    def of(cls, t):
        for d in cls:
            if d.torch is t.dtype: return d
        raise LookupError(str(t.dtype))
    def __rmul__(self, t): return t.to(self.torch)
    def __matmul__(self, o): return Dtype.of(torch.zeros(1, dtype=self.torch) + torch.zeros(1, dtype=o.torch))

class Mode(StrEnum):
    Train = auto()
    Eval = auto()

class Weighted(Enum):
    def __new__(cls, v, w):
        o = object.__new__(cls)
        o._value_, o.w = v, w
        return o
    A = 1, 0.5
    B = 2, 2.0
    def scale(self, x): return x * self.w

def program(x, name, mode):
    res = []
    try:
        d = Dtype[name] if name in Dtype else Dtype(name)
        x = x * d
        res.append(Dtype.of(x).name)
    except (ValueError, KeyError, LookupError, TypeError, AttributeError) as e:
        print(type(e).__name__, str(e)[:40])
        d = Dtype.DOUBLE
    res += [Dtype.I32 is Dtype.INT, [m.name for m in Dtype], list(Dtype.__members__), (d @ Dtype.FLOAT).name, f'{Mode.Train}-{mode}', Mode(mode) if mode in ('train', 'eval') else None]
    y = sum(m.scale(x) for m in Weighted)
    if mode == Mode.Eval: y = y.round()
    Color = Enum('Color', 'RED GREEN')
    try:
        Weighted.A.w = 3
        Weighted.A = 1
    except AttributeError as e:
        res.append(str(e))
    finally:
        Weighted.A.w = 0.5
    return y, res, Color.GREEN.value, Weighted(2).w, hash(Mode.Eval) == hash('eval'), Mode.Eval in {'eval'}, {Mode.Train: 1}['train'], repr(d), Color(1).name, isinstance(Mode.Eval, str)

CALLS = ["(torch.arange(3.), 'half', 'train')", "(torch.ones(2), 'I32', 'eval')", "(torch.ones(2), 'DOUBLE', 'x')", "(torch.ones(0), 'bool', 'eval')", "(torch.tensor(True), 'Float', '')"]
