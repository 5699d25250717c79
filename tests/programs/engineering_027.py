import torch
from collections import defaultdict

class Meter:
    def __init__(self): self.reset()
    def reset(self): self.sum = self.count = 0; self.min, self.max = float('inf'), -float('inf')
    def update(self, v, n=1):
        if isinstance(v, torch.Tensor):
            v = v.item() if v.numel() == 1 else v.mean().item()
        self.sum += v * n; self.count += n
        self.min = min(self.min, v); self.max = max(self.max, v)
    @property
    def mean(self):
        return self.sum / self.count
    def __format__(self, spec):
        return format(self.mean, spec or '.2f')
    def __float__(self): return float(self.mean)

class Plateau:
    def __init__(self, lr, factor=0.5, patience=1):
        self.__dict__.update(locals())
        del self.__dict__['self']
        self.best, self.bad = None, 0
    def __call__(self, metric):
        if self.best is None or metric < self.best:
            self.best, self.bad = metric, 0
        else:
            self.bad += 1
        if self.bad > self.patience:
            self.lr *= self.factor
            self.bad = 0
            return True
        return False

def program(x, lr, steps):
    meters = defaultdict(Meter)
    sched = Plateau(lr)
    w = torch.tensor(1.0)
    drops = []
    for i in range(steps):
        loss = (w * x).pow(2).mean()
        grad = 2 * w * x.pow(2).mean()
        w = w - sched.lr * grad
        meters['loss'].update(loss, n=len(x))
        meters['grad'].update(grad)
        meters['x'].update(x * w)
        if sched(float(loss)):
            drops.append(i)
            print(f"{meters['loss']:.3f} {meters['grad']}")
    try:
        bad = float(meters['missing'])
    except ZeroDivisionError as e:
        bad = repr(e)
    return w, drops, {k: (m.sum, m.count, m.min, m.max) for k, m in meters.items()}, bad, vars(sched)

CALLS = ["(torch.arange(1.,4.), 0.1, 4)", "(torch.ones(2), 1.5, 6)", "(torch.zeros(3), 1., 5)", "(torch.tensor([float('nan')]), 1., 4)"]
