import torch
import math
from dataclasses import dataclass, field
from typing import ClassVar

@dataclass
class Param:
    lo: float
    hi: float
    raw: torch.Tensor
    instances: ClassVar[int] = 0
    def __post_init__(self):
        type(self).instances += 1
        self.__class__.instances
    def __call__(self): return self.lo + (self.hi - self.lo) * torch.sigmoid(self.raw)

class Simplex:
    def __init__(self, f, x0, step=0.5):
        self.f = f
        self.pts = [x0] + [x0 + step * torch.eye(len(x0))[i] for i in range(len(x0))]
        self.evals = 0
    def __call__(self, p):
        self.evals += 1
        return self.f(p).item()
    def run(self, iters):
        vals = [self(p) for p in self.pts]
        for it in range(iters):
            order = sorted(range(len(vals)), key=vals.__getitem__)
            self.pts, vals = [self.pts[i] for i in order], [vals[i] for i in order]
            if math.isclose(vals[0], vals[-1], rel_tol=1e-3):
                yield it, vals[0], 'converged'
                return
            c = torch.stack(self.pts[:-1]).mean(0)
            worst = self.pts[-1]
            for name, k in (('reflect', 1), ('expand', 2), ('contract', -0.5)):
                p = c + k * (c - worst)
                if (v := self(p)) < vals[-1]:
                    self.pts[-1], vals[-1] = p, v
                    break
            else:
                name = 'shrink'
                self.pts = [self.pts[0] + 0.5 * (p - self.pts[0]) for p in self.pts]
                vals = [self(p) for p in self.pts]
            yield it, round(min(vals), 4), name

def program(x0, iters, lo):
    Param.instances = 0
    par = Param(lo, 2.0, x0)
    s = Simplex(lambda p: ((p - par()) ** 2).sum() + 1, x0.clone())
    log = []
    try:
        for it, v, name in s.run(iters):
            log.append(name)
            if it == 2:
                print(it, v, name)
    except (ValueError, RuntimeError, IndexError) as e:
        log.append(type(e).__name__)
    best = s.pts[0]
    return best, log, s.evals, Param.instances, par.instances, par(), s.pts[0] is x0

CALLS = ["(torch.zeros(2), 6, 0.0)", "(torch.ones(1), 4, -1.0)", "(torch.zeros(0), 3, 0.)", "(torch.tensor([1., 2., 3.]), 0, 0.)", "(torch.full((2,), float('nan')), 2, 0.)"]
