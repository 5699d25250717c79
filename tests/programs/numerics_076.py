import torch
from torch import nn

class Residual(nn.Module):
    def __init__(self, *fns): super().__init__(); self.fns = nn.ModuleList(fns); self.drop = set()
    def forward(self, x):
        for i, f in enumerate(self.fns):
            if i in self.drop: continue
            x = x + f(x)
        return x

def summary(m):
    rows = {}
    def hook(name):
        def h(mod, inp, out): rows[name] = (type(mod).__name__, tuple(out.shape), sum(p.numel() for p in mod.parameters()))
        return h
    hs = [c.register_forward_hook(hook(n)) for n, c in m.named_modules() if not list(c.children())]
    return rows, hs

def surgery(m, cond, make):
    for name, child in list(m.named_children()):
        if cond(child): setattr(m, name, make(child))
        else: surgery(child, cond, make)
    return m

def program(x, p=0.5, drop=()):
    torch.manual_seed(1)
    d = x.shape[-1]
    m = Residual(nn.Sequential(nn.Linear(d, d), nn.Dropout(p)), nn.Identity(), nn.BatchNorm1d(d))
    m.drop.update(drop)
    rows, hs = summary(m)
    a = m(x)
    if a.abs().mean() > 1:
        print('replace', len(rows))
        surgery(m, lambda c: isinstance(c, nn.Dropout), lambda c: nn.Identity())
    b = m(x)
    for h in hs: h.remove()
    m.apply(lambda c: c.reset_running_stats() if isinstance(c, nn.BatchNorm1d) else None)
    m.eval()
    c = m(x)
    return a, b, c, rows, [type(k).__name__ for k in m.modules()], m.fns[2].num_batches_tracked, {n: b for n, b in m.named_buffers()}

CALLS = ["(torch.arange(6.).reshape(3,2),)", "(torch.arange(6.).reshape(3,2),)", "(torch.zeros(2,3), 0.0, [0])", "(torch.ones(1,2),)", "(torch.ones(2,2)*9, 1.0, [2, 1])"]
