import torch
from torch import nn
from dataclasses import dataclass, field

@dataclass
class History:
    losses: list = field(default_factory=list)
    lrs: list = field(default_factory=list)
    best: float = float('inf')
    stopped_at: int | None = None

    def update(self, loss, lr):
        self.losses.append(round(loss, 5))
        self.lrs.append(lr)
        improved = loss < self.best - 1e-4
        if improved:
            self.best = loss
        return improved

class EarlyStop(Exception):
    def __init__(self, epoch):
        super().__init__(f'stopped at {epoch}')
        self.epoch = epoch

def make_model(d):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(d, 4), nn.Tanh(), nn.Linear(4, 1))

def train(model, x, y, epochs, patience, history):
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    bad = 0
    for epoch in range(epochs):
        opt.zero_grad()
        out = model(x)
        loss = ((out.squeeze(-1) - y) ** 2).mean()
        loss.backward()
        opt.step()
        if history.update(loss.item(), opt.param_groups[0]['lr']):
            bad = 0
        else:
            bad += 1
            opt.param_groups[0]['lr'] *= 0.5
            if bad >= patience:
                raise EarlyStop(epoch)
    return epoch

def program(x, y, epochs=6, patience=2):
    model = make_model(x.shape[1])
    history = History()
    try:
        last = train(model, x, y, epochs, patience, history)
    except EarlyStop as e:
        history.stopped_at = e.epoch
        last = str(e)
    finally:
        n = sum(p.numel() for p in model.parameters())
    return last, history, n, model.state_dict()

CALLS = ["(torch.arange(12.).reshape(4,3)/10, torch.tensor([0.,1.,0.,1.]))",
 "(torch.arange(12.).reshape(4,3)/10, torch.tensor([0.,1.,0.,1.]))",
 "(torch.ones(2,5), torch.tensor([1e3,-1e3]), 12, 1)",
 "(torch.zeros(3,1), torch.zeros(3), 10, 3)",
 "(torch.full((2,2), float('nan')), torch.zeros(2))"]
