import torch
import math
from abc import ABC, abstractmethod

class Schedule(ABC):
    registry = {}
    def __init_subclass__(cls, /, key=None, **kw):
        super().__init_subclass__(**kw)
        cls.key = key or cls.__name__.lower()
        Schedule.registry[cls.key] = cls

    @abstractmethod
    def lr(self, step): ...

    def __add__(self, other): return Chain(self, other)
    def __mul__(self, k): return Scaled(self, k)
    __rmul__ = __mul__
    def __call__(self, step): return max(self.lr(step), 0.0)

class Const(Schedule):
    def __init__(self, v): self.v = v
    def lr(self, step): return self.v

class Cosine(Schedule, key='cos'):
    def __init__(self, base, total): self.base, self.total = base, total
    def lr(self, step): return self.base * 0.5 * (1 + math.cos(math.pi * min(step, self.total) / self.total))

class Scaled(Schedule):
    def __init__(self, inner, k): self.inner, self.k = inner, k
    def lr(self, step): return self.k * self.inner.lr(step)

class Chain(Schedule):
    def __init__(self, *parts): self.parts = parts
    def lr(self, step): return sum(p.lr(step) for p in self.parts)

class SGD:
    def __init__(self, params, sched):
        self.params, self.sched, self.t, self.hist = list(params), sched, 0, []
    @torch.no_grad()
    def step(self):
        lr = self.sched(self.t)
        self.hist.append(round(lr, 5))
        for p in self.params:
            if p.grad is None: continue
            p -= lr * p.grad
            p.grad = None
        self.t += 1

def program(x, steps, expr):
    w = torch.ones_like(x, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    sched = eval(expr, {k: c for k, c in Schedule.registry.items()})
    opt = SGD([w, b], sched)
    losses = []
    for _ in range(steps):
        loss = ((w * x + b.detach()) ** 2).mean()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        if len(losses) > 1 and losses[-1] > losses[-2]:
            print('diverging at', opt.t)
            break
    try:
        Schedule()
    except TypeError as e:
        msg = str(e)
    return losses, w.detach(), w.grad, b.grad, opt.hist, msg, type(sched).__name__

CALLS = ["(torch.arange(4.), 3, 'const(0.1)')", "(torch.arange(3.), 4, 'cos(0.2, 3) + const(0.01)')", "(torch.ones(2), 3, '3 * (cos(1.0, 2) * 2)')",
 "(torch.ones(2), 0, 'const(1)')", "(torch.ones(2), 1, 'cos(1.0, 0)')"]
