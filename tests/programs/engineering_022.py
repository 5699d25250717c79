import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

def lr_lambda(warmup):
    def f(step):
        return min(1.0, (step + 1) / warmup) if step < 5 else 0.5 ** (step - 4)
    return f

class EarlyStop(Exception):
    def __init__(self, step, value):
        super().__init__(step, value)
        self.step, self.value = step, value

class Trainer:
    def __init__(self, model, patience):
        self.model = model
        self.best, self.bad, self.patience = float('inf'), 0, patience
        self.snapshot = None
    def check(self, step, loss):
        v = loss.item()
        if v < self.best - 1e-4:
            self.best, self.bad = v, 0
            self.snapshot = {k: t.clone() for k, t in self.model.state_dict().items()}
        else:
            self.bad += 1
            if self.bad >= self.patience:
                raise EarlyStop(step, v)

def program(x, y, steps, patience, lr):
    model = nn.Sequential(nn.Linear(x.shape[1], 2), nn.Tanh(), nn.Linear(2, 1))
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(torch.arange(p.numel()).view_as(p).sin() * (i + 1) / 3)
    opt = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    sched = LambdaLR(opt, lr_lambda(3))
    trainer = Trainer(model, patience)
    stopped = None
    try:
        for step in range(steps):
            opt.zero_grad()
            loss = nn.functional.mse_loss(model(x).squeeze(-1), y)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step(); sched.step()
            trainer.check(step, loss)
    except EarlyStop as e:
        stopped = (e.step, e.value, e.args)
    return trainer.snapshot, trainer.best, stopped, sched.get_last_lr(), norm, model[0].weight.grad

CALLS = ["(torch.eye(3), torch.ones(3), 6, 2, 0.1)", "(torch.ones(2,2), torch.zeros(2), 4, 1, 5.0)", "(torch.zeros(1,1), torch.ones(1), 3, 3, 0.0)", "(torch.arange(8.).view(4,2), torch.ones(4), 3, 5, 0.01)"]
