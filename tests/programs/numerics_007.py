import torch
from torch import nn
from enum import Enum, auto

class Phase(Enum):
    WARMUP = auto()
    TRAIN = auto()
    DECAY = auto()
    @property
    def scale(self):
        return {Phase.WARMUP: 0.1, Phase.TRAIN: 1.0}.get(self, 0.5)

class Scheduler:
    def __init__(self, opt, base):
        self.opt, self.base = opt, base
        self.phase = Phase.WARMUP
        self.history = []
    def step(self, loss):
        match self.phase, loss:
            case Phase.WARMUP, float(v) if v < 2:
                self.phase = Phase.TRAIN
            case Phase.TRAIN, float(v) if v < 0.5:
                self.phase = Phase.DECAY
            case Phase.DECAY, v if v != v:
                raise FloatingPointError('nan loss')
            case _:
                pass
        for g in self.opt.param_groups:
            g['lr'] = self.base * self.phase.scale
        self.history.append(self.phase)

def program(target, steps):
    p = nn.Parameter(torch.zeros_like(target))
    opt = torch.optim.SGD([p], lr=0.3)
    sched = Scheduler(opt, 0.3)
    out = []
    i = -1
    while (i := i + 1) < steps:
        loss = (p - target).square().sum()
        loss.backward()
        opt.step()
        sched.step(loss.item())
        out.append(p.detach().clone())
        p.grad.zero_()
    return {'phase': sched.phase, 'names': [h.name for h in sched.history], 'out': out, 'p': p, 'lr': opt.param_groups[0]['lr'],
            'version': p._version}

CALLS = ["(torch.tensor([1.,2.]), 5)", "(torch.tensor([1.,2.]), 5)", "(torch.tensor([.1]), 3)", "(torch.tensor([float('nan')]), 2)", "(torch.tensor([1, 2]), 2)"]
