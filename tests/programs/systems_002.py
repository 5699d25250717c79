import torch
from dataclasses import dataclass, field, fields, is_dataclass, replace, asdict

@dataclass
class Opt:
    lr: float = 0.1
    betas: tuple = (0.9, 0.99)
    nesterov: bool = False
@dataclass
class Model:
    width: int = 4
    act: str = 'relu'
    bias: torch.Tensor = field(default_factory=lambda: torch.zeros(1))
@dataclass
class Config:
    opt: Opt = field(default_factory=Opt)
    model: Model = field(default_factory=Model)
    tags: list = field(default_factory=list)
    name: str = 'run'

    def validate(self):
        errs = []
        if self.opt.lr <= 0: errs.append(f'opt.lr must be > 0, got {self.opt.lr!r}')
        if self.model.act not in ('relu', 'tanh'): errs.append(f'model.act: {self.model.act!r}')
        if not 0 < self.model.width < 100: errs.append('model.width out of range')
        if errs: raise ValueError('; '.join(errs))
        return self

def parse(v, typ):
    if typ is bool: return {'true': True, 'false': False}[v.lower()]
    if typ is tuple: return tuple(float(p) for p in v.strip('()').split(','))
    if typ is list: return [p for p in v.split(',') if p]
    return typ(v)

def override(cfg, path, v):
    head, _, rest = path.partition('.')
    for f in fields(cfg):
        if f.name == head:
            cur = getattr(cfg, head)
            new = override(cur, rest, v) if rest and is_dataclass(cur) else parse(v, type(cur))
            return replace(cfg, **{head: new})
    raise AttributeError(f'{type(cfg).__name__} has no field {head!r}')

def program(overrides, x):
    base = cfg = Config()
    problems = []
    for o in overrides:
        try:
            k, v = o.split('=', 1)
            cfg = override(cfg, k, v)
        except (AttributeError, ValueError, KeyError) as e:
            problems.append((type(e).__name__, str(e)))
    try:
        cfg.validate()
    except ValueError as e:
        problems.append(e)
        print('invalid:', e)
    w = torch.full((x.shape[-1], max(cfg.model.width, 1)), cfg.opt.lr)
    y = x @ w + cfg.model.bias
    y = getattr(torch, cfg.model.act, torch.sigmoid)(y)
    for b in cfg.opt.betas:
        y = y * b + (1 - b)
    if y.numel() and y.max() > 1: y = y / y.max()
    d = asdict(cfg)
    return cfg, base is cfg, base.model is cfg.model, y, problems, d['opt'], cfg.opt == base.opt, repr(cfg.opt)

CALLS = ["(['opt.lr=0.5','model.width=3'], torch.arange(6.).reshape(2,3))", "(['opt.lr=-1','model.act=gelu','zzz=1'], torch.ones(1,2))",
 "([], torch.zeros(2,2))", "(['opt.nesterov=TRUE','opt.betas=(0.5,0.25,1)','tags=a,b,,c','name=x=y'], torch.linspace(-2,2,8).reshape(2,4))",
 "(['opt.nesterov=maybe','noeq','model.width=7.5'], torch.ones(3,1))"]
