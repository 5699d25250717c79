import torch
from collections import OrderedDict

class SGDm:
    """hand-written momentum SGD with weight decay and nesterov"""
    registry = {}
    def __init__(self, params, lr=0.1, momentum=0.9, nesterov=False, wd=0.0):
        self.params = [p for p in params]
        self.lr, self.momentum, self.nesterov, self.wd = lr, momentum, nesterov, wd
        self.buf = {}
        self.steps = 0
        type(self).registry[len(self.registry)] = self

    @torch.no_grad()
    def step(self):
        self.steps += 1
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            g = p.grad
            if self.wd:
                g = g + self.wd * p
            if (b := self.buf.get(i)) is None:
                b = self.buf[i] = g.clone()
            else:
                b.mul_(self.momentum).add_(g)
            p.sub_(self.lr * (g + self.momentum * b if self.nesterov else b))

    def zero_grad(self):
        for p in self.params:
            p.grad = None

def program(x, steps, nesterov, wd):
    SGDm.registry.clear()
    w = torch.zeros(x.shape[-1], requires_grad=True)
    unused = torch.ones(2, requires_grad=True)
    opt = SGDm([w, unused], 0.05, nesterov=nesterov, wd=wd)
    best, history = float('inf'), []
    for s in range(steps):
        opt.zero_grad()
        loss = ((x @ w - 1) ** 2).mean()
        loss.backward()
        opt.step()
        l = loss.item()
        history.append(round(l, 4))
        if l < best - 1e-4:
            best = l
        elif l != l:
            print('nan at', s); break
        else:
            print('stop at', s); break
    return w.detach().clone(), history, opt.steps, sorted(opt.buf), unused.grad is None, SGDm.registry[0] is opt, w.grad

CALLS = ["(torch.arange(6.).reshape(3,2)/5, 5, False, 0.0)", "(torch.arange(6.).reshape(3,2)/5, 8, True, 0.01)",
 "(torch.ones(4,3), 6, True, 0)", "(torch.zeros(0,3), 4, False, 0.1)", "(torch.full((2,2), 30.), 5, False, 0.0)", "(torch.ones(2), 2, False, 0)"]
