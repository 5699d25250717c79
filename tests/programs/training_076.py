import torch
from torch import nn

class Stats(nn.Module):
    def __init__(self, width, eps=1e-5, track=True):
        super().__init__()
        self.eps = eps
        for name, init in (('mean', 0.), ('var', 1.)):
            self.register_buffer(name, torch.full((width,), init) if track else None)
        self.register_buffer('n', torch.tensor(0) if track else None)
    def forward(self, x):
        if self.training or self.mean is None:
            mu, var = x.mean(0), x.var(0, unbiased=False)
            if self.mean is not None:
                self.n += 1
                with torch.no_grad():
                    m = 1 / self.n.item()
                    self.mean.lerp_(mu, m); self.var = self.var * (1 - m) + var * m
        else:
            mu, var = self.mean, self.var
        return (x - mu) * (var + self.eps).rsqrt()

class Net(nn.Module):
    __constants__ = ['order']
    def __init__(self, d, order):
        super().__init__()
        self.order = order
        self.parts = nn.ModuleDict(dict(norm=Stats(d), act=nn.Hardtanh(), raw=Stats(d, track=False), drop=nn.Dropout(1.0)))
    def forward(self, x):
        trace = {}
        for k in self.order:
            x = trace[k] = self.parts[k](x)
        return x, trace

def convert(m, old, new):
    n = 0
    for name, c in m.named_children():
        if type(c) is old:
            setattr(m, name, new(c)); n += 1
        else: n += convert(c, old, new)
    return n

def program(x, order, batches):
    net = Net(x.shape[1], order)
    try:
        for i in range(batches): out, tr = net(x + i)
    except KeyError as e:
        print('unknown', e); net.order = [o for o in order if o in net.parts]; out, tr = net(x)
    bufs = {n: b.clone() for n, b in net.named_buffers()}
    net.eval()
    ev, tr2 = net(x)
    keep = net.parts.norm.var
    net.parts.norm.mean.add_(1)
    net.parts.norm.n = None
    ev2, _ = net(x)
    k = convert(net, Stats, lambda s: nn.Identity())
    ev3, _ = net(x)
    net.parts.norm = nn.Sequential(nn.Flatten(0), nn.Unflatten(0, x.shape))
    ev4, _ = net(x)
    return ev, ev2, ev3, ev4, bufs, k, sorted(tr2), [n for n, _ in net.named_buffers()], keep, str(net).count('\n'), 'norm' in net.parts, tr2.get('act') is ev

CALLS = ["(torch.arange(6.).reshape(3,2), ['norm','act'], 2)", "(torch.arange(6.).reshape(3,2), ['raw','norm','drop'], 3)", "(torch.ones(1,2), ['norm','zzz'], 1)", "(torch.ones(2,2), [], 1)", "(torch.ones(0,2), ['norm'], 1)", "(torch.ones(2,2), ['norm'], 0)"]
