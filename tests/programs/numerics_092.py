import torch
from torch import nn

class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('n', torch.zeros(2, dtype=torch.long))
        self.hist = {}
    def forward(self, x, tag='a'):
        i = int(x.sum() > 0)
        self.n[i] += 1
        self.hist[tag] = self.hist.get(tag, ()) + (i,)
        return x * (1 if i else -1)
    def get_extra_state(self): return {'hist': dict(self.hist)}
    def set_extra_state(self, s): self.hist = {k: v * 2 for k, v in s['hist'].items()}

class Both(nn.Module):
    def __init__(self, c): super().__init__(); self.a = c; self.b = nn.Sequential(c, nn.Identity())
    def forward(self, x): return self.b(self.a(x, tag='direct'))

def program(xs, reload):
    c = Counter()
    m = Both(c)
    outs = [m(x) for x in xs]
    if reload and c.n.min() > 0:
        m2 = Both(Counter())
        m2.load_state_dict(m.state_dict())
        print('reloaded', m2.a.hist)
        outs.append(m2(xs[0]))
        c = m2.a
    return outs, c.n, c.hist, list(m.state_dict()), len(list(m.modules())), m.half().a is m.b[0], [b.dtype for b in m.buffers()]

CALLS = ["([torch.ones(2), -torch.ones(2)], True)", "([torch.ones(2), -torch.ones(2)], True)", "([torch.ones(2)], True)", "([], False)", "([torch.tensor(float('nan'))], False)"]
