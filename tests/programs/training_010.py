import torch
from torch import nn

class Coupling(nn.Module):
    def __init__(self, d, flip):
        super().__init__()
        self.flip = flip
        h = d // 2
        self.s = nn.Linear(h, d - h); self.t = nn.Linear(h, d - h)
        for p in self.parameters():
            nn.init.constant_(p, 0.1 if flip else 0.2)
    def _split(self, x):
        h = self.s.in_features
        return (x[:, :h], x[:, h:])
    def forward(self, x, reverse=False):
        if self.flip:
            x = x.flip(1)
        a, b = self._split(x)
        s = torch.tanh(self.s(a))
        if reverse:
            b, ld = (b - self.t(a)) * (-s).exp(), -s.sum(1)
        else:
            b, ld = b * s.exp() + self.t(a), s.sum(1)
        y = torch.cat([a, b], 1)
        if self.flip:
            y = y.flip(1)
        return y, ld

class Flow(nn.ModuleList):
    def forward(self, x):
        ld = 0
        for f in self:
            x, l = f(x)
            ld += l
        return x, ld
    def inverse(self, y):
        for f in reversed(self):
            y, _ = f(y, reverse=True)
        return y

def program(x, n):
    flow = Flow(Coupling(x.shape[1], i % 2 == 1) for i in range(n))
    y, ld = flow(x)
    back = flow.inverse(y)
    base = torch.distributions.Normal(0., 1.)
    lp = base.log_prob(y).sum(1) + ld
    ok = torch.allclose(back, x, atol=1e-4)
    if not ok:
        print('not inverted')
    worst = None
    if len(x):
        worst = lp.argmin().item()
        print('worst', worst)
    return y, ld, lp, ok, worst, len(flow), y is x

CALLS = ["(torch.arange(8.).reshape(2,4)/4, 2)", "(torch.arange(6.).reshape(2,3)/4, 3)", "(torch.ones(3,4), 0)", "(torch.ones(0,2), 1)", "(torch.ones(2,1), 1)"]
