import torch
from torch import nn
import itertools

class Trainer:
    registry = {}

    def __init_subclass__(cls, name=None, **kw):
        super().__init_subclass__(**kw)
        Trainer.registry[name or cls.__name__.lower()] = cls

    def __init__(self, model, **hp):
        self.model = model
        self.hp = hp
        self.step_count = itertools.count(1)
        self.callbacks = []

    def on(self, fn):
        self.callbacks.append(fn)
        return fn

    def step(self, x):
        for p in self.model.parameters():
            p.grad = None
        loss = self.loss(x)
        loss.backward()
        with torch.no_grad():
            for p in self.model.parameters():
                p -= self.hp.get('lr', 0.1) * self.direction(p)
        n = next(self.step_count)
        for cb in self.callbacks:
            cb(n, loss.item())
        return loss.detach()

class Sgd(Trainer):
    def loss(self, x):
        return self.model(x).abs().mean()
    def direction(self, p):
        return p.grad

class Sign(Sgd, name='signsgd'):
    def direction(self, p):
        return super().direction(p).sign()

def program(kind, x, n):
    torch.manual_seed(1)
    model = nn.Linear(x.shape[-1], 2, bias=False)
    trainer = Trainer.registry[kind](model, lr=0.05)
    seen = []
    @trainer.on
    def record(i, value):
        seen.append((i, round(value, 4)))
        if len(seen) > 1 and seen[-1][1] > seen[-2][1]:
            print(f'loss went up at {i}')
    best = None
    losses = []
    for _ in range(n):
        loss = trainer.step(x)
        losses.append(loss)
        if best is None or loss < best:
            best, best_weight = loss, model.weight.detach().clone()
    return seen, torch.stack(losses), best, best_weight, next(trainer.step_count)

CALLS = ["('sgd', torch.ones(2,3), 4)", "('sgd', torch.ones(2,3), 4)", "('signsgd', torch.arange(8.).reshape(2,4), 6)",
  "('adam', torch.ones(1,1), 1)", "('sgd', torch.ones(2,3), 0)"]
