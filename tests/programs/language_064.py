import torch
import math
import warnings
from dataclasses import dataclass

@dataclass
class Scaler:
    scale: float = 8.0
    growth: int = 2
    good: int = 0
    skipped: int = 0
    def unscale(self, grads):
        return [g / self.scale if g is not None else None for g in grads]
    def update(self, ok):
        match ok, self.good + 1 >= self.growth:
            case False, _:
                self.scale, self.good = max(self.scale / 2, 1.0), 0
                self.skipped += 1
            case True, True:
                self.scale *= 2; self.good = 0
            case _:
                self.good += 1

class Plateau:
    def __init__(self, opt, patience=1, factor=.5, *, verbose=False):
        self.opt, self.patience, self.factor = opt, patience, factor
        self.best, self.bad = math.inf, 0
        self._print = print if verbose else lambda *a: None
    def step(self, metric):
        better = metric < self.best - 1e-4
        self.best, self.bad = (metric, 0) if better else (self.best, self.bad + 1)
        if self.bad > self.patience:
            for i, g in enumerate(self.opt.param_groups):
                g['lr'] *= self.factor
                self._print(f'group {i} -> {g["lr"]:g}')
            self.bad = 0

def program(x, y, steps, lr, scale):
    torch.manual_seed(0)
    w = torch.nn.Parameter(torch.zeros(x.shape[1], 1))
    b = torch.nn.Parameter(torch.zeros(1))
    opt = torch.optim.SGD([{'params': [w]}, {'params': [b], 'lr': lr / 10}], lr=lr, momentum=0.5)
    sc, pl = Scaler(scale), Plateau(opt, verbose=True)
    losses = []
    for _ in range(steps):
        opt.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(x @ w + b, y)
        (loss * sc.scale).backward()
        grads = sc.unscale(p.grad for p in (w, b))
        if ok := all(torch.isfinite(g).all() for g in grads):
            for p, g in zip((w, b), grads): p.grad = g
            opt.step()
        sc.update(bool(ok))
        losses.append(round(loss.item(), 4))
        pl.step(loss.item())
    return losses, w.detach(), b.detach(), sc, [g['lr'] for g in opt.param_groups], pl.best, len(opt.state)

_p = program
def program(*a):
    l, w, b, sc, *r = _p(*a)
    return l, w, b, vars(sc), r

CALLS = ["(torch.eye(2), torch.ones(2, 1), 4, 0.1, 8.0)", "(torch.eye(2), torch.ones(2, 1), 5, 100., 8.0)", "(torch.eye(2) * 3e38, torch.ones(2, 1), 2, 0.1, 2.0)", "(torch.eye(1), torch.ones(1, 1), 0, 0.1, 1)", "(torch.ones(3, 2), torch.arange(3.)[:, None], 3, 0.5, 2)"]
