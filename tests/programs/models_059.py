import torch
from dataclasses import dataclass, field, fields, is_dataclass, FrozenInstanceError, KW_ONLY, InitVar
@dataclass(frozen=True)
class Opt:
    lr: float = .1
    betas: tuple = (.9, .999)
    _: KW_ONLY
    nesterov: bool = False
@dataclass
class Config:
    name: str
    opt: Opt = field(default_factory=Opt)
    layers: list = field(default_factory=lambda: [2, 2])
    scale: InitVar[float] = None
    def __post_init__(self, scale):
        if scale is not None: self.layers = [int(l * scale) for l in self.layers]
        if any(l <= 0 for l in self.layers): raise ValueError(f'{self.name}: bad layers {self.layers}')
    def __matmul__(self, x):
        for i, l in enumerate(self.layers): x = torch.tanh(x @ torch.full((x.shape[-1], l), self.opt.lr * (i + 1)))
        return x
def from_dict(cls, d):
    kinds = {f.name: f for f in fields(cls)}; kw = {}
    for k, v in d.items():
        f = kinds.get(k)
        kw[k] = from_dict(f.type, v) if f is not None and is_dataclass(f.type) and isinstance(v, dict) else v
    return cls(**kw)
def flatten(c, pre=''):
    for f in fields(c):
        v = getattr(c, f.name)
        if is_dataclass(v): yield from flatten(v, f'{pre}{f.name}.')
        else: yield pre + f.name, v
def program(d, x):
    try: c = from_dict(Config, d)
    except (TypeError, ValueError) as e: return type(e).__name__, str(e)
    y = c @ x
    try: c.opt.lr = 5
    except FrozenInstanceError as e: err = str(e)
    if y.abs().max() > .5: print('big', c)
    return y, dict(flatten(c)), err, hash(c.opt) == hash(Opt(c.opt.lr, c.opt.betas, nesterov=c.opt.nesterov)), c == from_dict(Config, d), c.opt is Config('z').opt, Config.__match_args__
CALLS = ["({'name':'a','opt':{'lr':.5}}, torch.ones(2,3))", "({'name':'b','scale':2.}, torch.arange(4.))", "({'name':'c','layers':[0]}, torch.ones(1))", "({'nme':1}, torch.ones(1))", "({'name':'d','layers':[]}, torch.zeros(0,2))"]
