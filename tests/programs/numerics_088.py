import torch
from dataclasses import dataclass, field, InitVar, fields, KW_ONLY
from typing import ClassVar, Any

@dataclass
class Config:
    lr: float
    _: KW_ONLY
    betas: tuple = (0.9, 0.99)
    seed: InitVar[int] = 0
    count: ClassVar[int] = 0
    init: torch.Tensor = field(init=False)
    def __post_init__(self, seed):
        Config.count += 1
        self.init = torch.randn(2, generator=torch.Generator().manual_seed(seed))

@dataclass(slots=True)
class AdamState:
    m: Any = 0
    v: Any = 0
    t: int = 0

def adam(p, g, st, cfg, eps=1e-8):
    b1, b2 = cfg.betas
    st.t += 1
    st.m = b1 * st.m + (1 - b1) * g
    st.v = b2 * st.v + (1 - b2) * g * g
    mh, vh = st.m / (1 - b1 ** st.t), st.v / (1 - b2 ** st.t)
    return p - cfg.lr * mh / (vh ** 0.5 + eps)

def program(kw, steps, fn='quad'):
    Config.count = 0
    try:
        cfg = Config(**kw)
    except TypeError as e:
        return str(e), Config.count
    st, p, path = AdamState(), cfg.init, []
    for _ in range(steps):
        p = p.detach().requires_grad_()
        y = {'quad': lambda: (p ** 2).sum(), 'abs': lambda: p.abs().sum()}[fn]()
        y.backward()
        if p.grad.norm() < 0.1: print('done at', st.t); break
        p = adam(p, p.grad, st, cfg)
        path.append(y.item())
    try:
        st.extra = 1
    except AttributeError as e: err = str(e)
    return p, path, st, err, cfg, [f.name for f in fields(cfg)], Config.count, cfg.seed

CALLS = ["({'lr': .1}, 3)", "({'lr': .1}, 3)", "({'lr': .5, 'seed': 3, 'betas': (0., .5)}, 4, 'abs')", "({}, 1)", "({'lr': 1}, 0)"]
