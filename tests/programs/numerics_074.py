import torch
from torch import nn

class SpectralLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, i * o).view(o, i))
        self.register_buffer('u', nn.functional.normalize(torch.ones(o), dim=0))
        self.n_power = 1
    def forward(self, x):
        with torch.no_grad():
            for _ in range(self.n_power):
                v = nn.functional.normalize(self.weight.t() @ self.u, dim=0)
                self.u.copy_(nn.functional.normalize(self.weight @ v, dim=0))
        sigma = torch.dot(self.u, self.weight @ v)
        self.sigma = sigma.item()
        return x @ (self.weight / sigma).t()

class SWA:
    def __init__(self): self.n, self.avg = 0, {}
    def __iadd__(self, m):
        self.n += 1
        for k, p in m.named_parameters():
            self.avg[k] = p.detach().clone() if k not in self.avg else self.avg[k] + (p.detach() - self.avg[k]) / self.n
        return self

def program(x, target, steps):
    net = SpectralLinear(x.shape[-1], target.shape[-1])
    opt = torch.optim.Adagrad(net.parameters(), lr=0.1)
    sch = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 0.5 ** s)
    swa, hist = SWA(), []
    for s in range(steps):
        out = net(x)
        loss = (out - target).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step(); sch.step()
        hist.append((net.sigma, sch.get_last_lr()[0], loss.item()))
        if loss < 1: swa += net
        else: print('skip', s)
    return hist, swa.avg, swa.n, net.u, net.weight, net.weight.grad

CALLS = ["(torch.eye(3), torch.zeros(3,2), 3)", "(torch.eye(3), torch.zeros(3,2), 3)", "(torch.ones(1,2), torch.full((1,2),9.), 2)", "(torch.ones(1,2), torch.ones(1,1), 0)", "(torch.ones(1,2), torch.ones(1,0), 1)"]
