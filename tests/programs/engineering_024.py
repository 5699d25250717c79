import torch
from dataclasses import dataclass, replace, asdict, fields

@dataclass(frozen=True)
class AdamConfig:
    lr: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    def scaled(self, k): return replace(self, lr=self.lr * k)

@dataclass
class AdamState:
    m: torch.Tensor
    v: torch.Tensor
    t: int = 0

def adam(cfg, p, g, s):
    t = s.t + 1
    m = cfg.beta1 * s.m + (1 - cfg.beta1) * g
    v = cfg.beta2 * s.v + (1 - cfg.beta2) * g * g
    mhat = m / (1 - cfg.beta1 ** t)
    vhat = v / (1 - cfg.beta2 ** t)
    return p - cfg.lr * mhat / (vhat.sqrt() + cfg.eps), AdamState(m, v, t)

def program(params, target, steps, **kw):
    cfg = AdamConfig(**kw)
    params = {k: v.clone() for k, v in params.items()}
    states = {k: AdamState(torch.zeros_like(v), torch.zeros_like(v)) for k, v in params.items()}
    log = []
    for i in range(steps):
        leaves = {k: v.detach().requires_grad_() for k, v in params.items()}
        loss = sum(((v - target) ** 2).sum() for v in leaves.values())
        grads = torch.autograd.grad(loss, list(leaves.values()))
        for (k, p), g in zip(leaves.items(), grads):
            params[k], states[k] = adam(cfg, p.detach(), g, states[k])
        if i and loss > log[-1]:
            cfg = cfg.scaled(0.5)
        log.append(loss.detach())
    try:
        cfg.lr = 3
    except Exception as e:
        err = type(e).__name__, str(e)
    return params, states, cfg, [f.name for f in fields(cfg)], torch.stack(log), err, hash(cfg) == hash(replace(cfg))

CALLS = ["({'a': torch.ones(2), 'b': torch.zeros(3,1)}, 2.0, 3)", "({'w': torch.tensor(5.)}, torch.tensor(-1.), 4)", "({'w': torch.arange(4.)}, 0.5, 1)"]
