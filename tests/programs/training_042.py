import torch
from enum import Enum, IntFlag, auto
from dataclasses import dataclass, replace, asdict, astuple, field, InitVar

class Act(Enum):
    RELU = 'relu'
    TANH = 'tanh'
    NONE = None
    def __call__(self, x):
        return x if self.value is None else getattr(torch, self.value)(x)
    @classmethod
    def _missing_(cls, v):
        return cls.NONE if v in ('', 'id') else None

class Flag(IntFlag):
    NORM = auto(); RES = auto(); DROP = auto()

@dataclass(frozen=True, order=True)
class Cfg:
    width: int
    act: Act = field(default=Act.RELU, compare=False)
    flags: Flag = Flag(0)
    seed: InitVar[int] = 0
    w: torch.Tensor = field(init=False, repr=False, compare=False)
    def __post_init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        object.__setattr__(self, 'w', torch.randn(self.width, self.width, generator=g))
    def apply(self, x):
        y = self.act(x @ self.w)
        if Flag.NORM in self.flags:
            y = torch.nn.functional.layer_norm(y, y.shape[-1:])
        if self.flags & Flag.RES:
            y = y + x
        return y

def program(x, act, flags):
    try:
        cfg = Cfg(x.shape[-1], Act(act), Flag(flags), seed=2)
    except ValueError as e:
        print(e); return str(e), x * 2
    c2 = replace(cfg, flags=cfg.flags | Flag.DROP, seed=3)
    y, y2 = cfg.apply(x), c2.apply(x)
    try:
        cfg.width = 3
    except AttributeError as e:
        frozen = type(e).__name__
    order = cfg < c2, cfg == replace(cfg, seed=9), cfg == c2, hash(cfg) == hash(replace(cfg, act=Act.TANH, seed=0))
    print(repr(cfg), c2.flags)
    best = max((c for c in (cfg, c2)), key=lambda c: (c.apply(x).sum().item(), c))
    return y, y2, frozen, order, [f.name for f in c2.flags], best is cfg, asdict(replace(cfg, seed=1))['act'], len(astuple(cfg)), Act[cfg.act.name] is cfg.act, list(Act), Act('id') is Act.NONE

CALLS = ["(torch.ones(2,3), 'relu', 0)", "(torch.ones(2,3), 'tanh', 3)", "(torch.arange(4.)[None], '', 2)", "(torch.ones(2), 'swish', 1)", "(torch.ones(0,2), 'id', 7)", "(torch.ones(2,3), None, 8)"]
