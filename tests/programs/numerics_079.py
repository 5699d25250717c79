import torch
from torch import nn

class Checkpointer:
    def __init__(self, keep): self.keep, self.saved = keep, {}
    def save(self, step, metric, **objs):
        self.saved[step] = metric, {k: {n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in o.state_dict().items()} for k, o in objs.items()}
        while len(self.saved) > self.keep:
            worst = max(self.saved, key=lambda s: self.saved[s][0])
            del self.saved[worst]
            yield worst
    def restore(self, **objs):
        step = min(self.saved, key=lambda s: self.saved[s][0])
        for k, o in objs.items(): o.load_state_dict(self.saved[step][1][k])
        return step

class Plateau:
    def __init__(self, opt, factor, patience):
        self.opt, self.factor, self.patience = opt, factor, patience
        self.best, self.bad = float('inf'), 0
    def state_dict(self): return {k: v for k, v in self.__dict__.items() if k != 'opt'}
    def load_state_dict(self, sd): self.__dict__.update(sd)
    def step(self, v):
        self.best, self.bad = (v, 0) if v < self.best else (self.best, self.bad + 1)
        if self.bad > self.patience:
            for g in self.opt.param_groups: g['lr'] *= self.factor
            self.bad = 0
            return True

def program(x, lr, steps, keep=2):
    torch.manual_seed(0)
    net = nn.Linear(x.shape[1], 1)
    opt = torch.optim.SGD(net.parameters(), lr=lr)
    sch, ck = Plateau(opt, 0.1, 0), Checkpointer(keep)
    removed = []
    for s in range(steps):
        loss = net(x).square().mean()
        net.zero_grad(); loss.backward(); opt.step()
        if sch.step(loss.item()): print(f'lr -> {opt.param_groups[0]["lr"]:.4f}')
        removed.extend(ck.save(s, loss.item(), net=net, sch=sch))
    at = ck.restore(net=net, sch=sch)
    return removed, at, net(x), sch.state_dict(), opt.param_groups[0]['lr'], {k: m for k, (m, _) in ck.saved.items()}

CALLS = ["(torch.eye(3), 0.1, 4)", "(torch.eye(3), 0.1, 4)", "(torch.eye(3)*5, 0.5, 4, 1)", "(torch.eye(3), 0.1, 0)", "(torch.zeros(0,2), 0.1, 2)"]
