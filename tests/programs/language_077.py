import torch
from dataclasses import dataclass, field, make_dataclass, fields, is_dataclass
from abc import ABC, abstractmethod, abstractproperty
import numbers

class Metric(ABC):
    _reg = {}
    def __init_subclass__(cls, **kw):
        super().__init_subclass__(**kw)
        if not getattr(cls, '__abstractmethods__', None) or True:
            cls._reg[cls.__name__] = cls
    @abstractmethod
    def update(self, p, t): ...
    @property
    @abstractmethod
    def value(self): ...
    def __or__(self, o): return Suite(self, *(o.ms if isinstance(o, Suite) else (o,)))
    @classmethod
    def __subclasshook__(cls, c):
        if cls is Metric: return all(any(n in b.__dict__ for b in c.__mro__) for n in ('update', 'value')) or NotImplemented
        return NotImplemented

@dataclass
class MSE(Metric):
    s: float = 0.0
    n: int = 0
    def update(self, p, t):
        self.s = self.s + ((p - t) ** 2).sum()
        self.n += p.numel()
    @property
    def value(self): return self.s / self.n

@dataclass
class Confusion(Metric):
    k: int
    m: torch.Tensor = field(init=False, compare=False)
    def __post_init__(self): self.m = torch.zeros(self.k, self.k, dtype=torch.long)
    def update(self, p, t):
        self.m.index_put_((t.long().flatten(), p.long().flatten()), torch.ones(t.numel(), dtype=torch.long), accumulate=True)
    @property
    def value(self): return self.m.diagonal().sum() / self.m.sum().clamp(min=1)

class Suite(Metric):
    def __init__(self, *ms): self.ms = ms
    def update(self, p, t):
        for m in self.ms: m.update(p, t)
    @property
    def value(self):
        D = make_dataclass('Report', [(type(m).__name__.lower(), float) for m in self.ms], frozen=True)
        return D(*(m.value for m in self.ms))

class Duck:
    update = value = None

def program(batches, k):
    s = MSE() | (Confusion(k) | MSE(s=1.0))if k != 1 else MSE() | Confusion(k)
    for p, t in batches:
        try:
            s.update(p, t)
        except (IndexError, RuntimeError) as e:
            print(type(e).__name__)
    try:
        v = s.value
        vals = {f.name: getattr(v, f.name) for f in fields(v)}
    except (ZeroDivisionError, TypeError) as e:
        vals = str(e)
        v = None
    try:
        Metric()
    except TypeError as e:
        msg = str(e)
    try:
        v.mse = 3
    except AttributeError as e:
        msg2 = type(e).__name__
    return vals, msg, [isinstance(o, Metric) for o in (s, Duck(), 3)], issubclass(Duck, Metric), sorted(Metric._reg), Confusion(2) == Confusion(2), isinstance(True, numbers.Integral), s.ms[1].m, is_dataclass(v), MSE.__abstractmethods__, s.ms[0].n

CALLS = ["([(torch.tensor([0., 1]), torch.tensor([0., 0]))] * 2, 1)", "([(torch.tensor([1]), torch.tensor([1]))], 2)", "([], 1)", "([(torch.tensor([3.]), torch.tensor([0.]))], 1)", "([(torch.tensor([1.]), torch.tensor([0.]))], 1)"]
