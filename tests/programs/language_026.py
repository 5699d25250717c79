import torch
from enum import Enum
from typing import Callable, Protocol, runtime_checkable

@runtime_checkable
class Optimisable(Protocol):
    def loss(self, x: torch.Tensor) -> torch.Tensor: ...
    def params(self) -> list: ...

class Reduction(str, Enum):
    MEAN = 'mean'
    SUM = 'sum'
    NONE = 'none'
    def __call__(self, t):
        return t if self is Reduction.NONE else getattr(t, self.value)()
    @classmethod
    def _missing_(cls, v):
        if isinstance(v, str) and v.lower() in cls._value2member_map_:
            return cls(v.lower())
        return None

class Activation(Enum):
    RELU = (torch.relu, 0)
    TANH = (torch.tanh, 1)
    def __init__(self, fn, rank):
        self.fn, self.rank = fn, rank
    def __lt__(self, o): return self.rank < o.rank if isinstance(o, Activation) else NotImplemented

class Linear:
    def __init__(self, w): self.w = w.requires_grad_()
    def loss(self, x): return (x * self.w - 1).pow(2)
    def params(self): return [self.w]

class NotQuite:
    loss = None

def program(w, x, red, act):
    try:
        r = Reduction(red)
        a = Activation[act]
    except (ValueError, KeyError) as e:
        print(type(e).__name__, e)
        return str(e)
    m = Linear(w)
    l = r(a.fn(m.loss(x)))
    checks = [isinstance(o, Optimisable) for o in (m, NotQuite(), 3)]
    try:
        l.backward()
    except RuntimeError as e:
        err = str(e)[:40]
    else:
        err = None
    try:
        a < 3
    except TypeError as e:
        cmp = str(e)
    return l.detach(), m.w.grad, err, checks, r == 'mean', f'{r}', r.upper(), min(Activation), cmp, {Reduction.SUM: 1}.get('sum'), [*Reduction.__members__], a.name

CALLS = ["(torch.ones(2), torch.arange(2.), 'mean', 'RELU')", "(torch.ones(2), torch.arange(2.), 'NONE', 'TANH')", "(torch.ones(3), torch.arange(3.), 'SUM', 'TANH')", "(torch.ones(3), torch.arange(3.), 3, 'TANH')", "(torch.ones(0), torch.ones(0), 'mean', 'GELU')"]
