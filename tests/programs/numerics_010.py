import torch
from torch import nn
from collections import deque

class ReplayTrainer:
    __slots__ = ('model', 'buffer', '_loss', 'n')
    def __init__(self, model, cap):
        self.model = model
        self.buffer = deque(maxlen=cap)
        self.n = 0
    @property
    def loss(self):
        try:
            return self._loss
        except AttributeError:
            return None
    @loss.setter
    def loss(self, v):
        self._loss = v if v == v else 0.0
    def feed(self, *items):
        self.buffer.extend(items)
        self.n += len(items)
        return self
    def learn(self):
        batch = torch.stack(tuple(self.buffer))
        out = self.model(batch)
        (g,) = torch.autograd.grad(out.var(), self.model.weight, retain_graph=False)
        self.loss = out.var().item()
        with torch.no_grad():
            self.model.weight.sub_(g, alpha=0.1)
        return g

def program(stream, cap):
    torch.manual_seed(9)
    t = ReplayTrainer(nn.Linear(stream.shape[1], 1), cap)
    before = t.loss
    gs = []
    for i, row in enumerate(stream):
        t.feed(row)
        if len(t.buffer) >= 2:
            gs.append(t.learn())
            if t.loss == 0.0:
                print('nothing to learn at', i)
                del t._loss
    return before, t.loss, gs, list(t.buffer), t.n, t.model.weight

CALLS = ["(torch.arange(6.).reshape(3,2), 2)", "(torch.arange(8.).reshape(4,2), 3)", "(torch.ones(3,2), 5)", "(torch.ones(0,2), 5)", "(torch.ones(2,3)*float('inf'), 2)"]
