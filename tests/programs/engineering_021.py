import torch
import math

class Scheduler:
    def __init__(self, opt, base): self.opt, self.base, self.t = opt, base, -1; self.step()
    def lr(self): raise NotImplementedError
    def step(self, **kw):
        self.t += 1
        for g in self.opt.param_groups:
            g['lr'] = self.lr()

class Cosine(Scheduler):
    def __init__(self, *a, T=10, floor=0.0):
        self.T, self.floor = T, floor
        super().__init__(*a)
    def lr(self):
        return self.floor + (self.base - self.floor) * .5 * (1 + math.cos(math.pi * min(self.t, self.T) / self.T))

class Warmup(Cosine):
    def __init__(self, *a, warm=2, **k):
        self.warm = warm
        super().__init__(*a, **k)
    def lr(self):
        if self.t < self.warm:
            return self.base * (self.t + 1) / self.warm
        return super().lr()

class SGD:
    def __init__(self, params, momentum=0.0):
        self.param_groups = [dict(params=list(params), lr=None, momentum=momentum)]
        self.state = {}
    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g['params']:
                if p.grad is None: continue
                buf = self.state.setdefault(id(p), torch.zeros_like(p))
                buf.mul_(g['momentum']).add_(p.grad)
                p.sub_(g['lr'] * buf)
                p.grad = None

def program(x, y, steps, momentum):
    w = torch.zeros(x.shape[1], requires_grad=True)
    b = torch.zeros((), requires_grad=True)
    opt = SGD([w, b], momentum)
    sched = Warmup(opt, 0.1, T=steps, warm=2)
    losses, lrs = [], []
    for i in range(steps):
        loss = ((x @ w + b - y) ** 2).mean()
        loss.backward()
        opt.step()
        sched.step()
        losses.append(loss.item())
        lrs.append(opt.param_groups[0]['lr'])
        if losses[-1] < 1e-3 or losses[-1] != losses[-1]:
            print('stop', i)
            break
    return w.detach(), b, losses, lrs, w.grad, w.requires_grad

CALLS = ["(torch.eye(3), torch.tensor([1.,2.,3.]), 5, 0.9)", "(torch.ones(4,1), torch.zeros(4), 3, 0.)", "(torch.full((2,2), 1e20), torch.ones(2), 4, 0.5)", "(torch.arange(6.).view(3,2), torch.tensor([1.,2.,3.]), 5, 0.)"]
