import torch, torch.nn as nn
class Adapter(nn.Module):
    def __init__(self, base, r=1):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.ones(base.in_features, r) * .1); self.b = nn.Parameter(torch.zeros(r, base.out_features))
        self.enabled = True
    def forward(self, x):
        y = self.base(x)
        return y + x @ self.a @ self.b if self.enabled else y
    def merge(self):
        with torch.no_grad(): self.base.weight += (self.a @ self.b).T
        return self.base
    def __getattr__(self, n):
        try: return super().__getattr__(n)
        except AttributeError: return getattr(super().__getattr__('base'), n)
def inject(m, r, pred):
    for n, c in list(m.named_children()):
        if isinstance(c, nn.Linear) and pred(n): setattr(m, n, Adapter(c, r))
        else: inject(c, r, pred)
    return m
class disabled:
    def __init__(self, m): self.ads = [c for c in m.modules() if isinstance(c, Adapter)]
    def __enter__(self):
        for a in self.ads: a.enabled = False
    def __exit__(self, *e):
        for a in self.ads: a.enabled = True
def program(x, r, names):
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(x.shape[-1], 3), nn.ReLU(), nn.ModuleDict({}), nn.Sequential(nn.Linear(3, 2)))
    del m[2]
    inject(m, r, names.__contains__)
    y0 = m(x)
    loss = (y0 - 1).pow(2).sum()
    if loss.requires_grad:
        loss.backward()
        for p in m.parameters():
            if p.grad is not None: p.data -= .1 * p.grad
    else: print('frozen nothing')
    y1 = m(x)
    with disabled(m): y2 = m(x)
    feats = [getattr(c, 'out_features', None) for c in m.modules()]
    merged = [c.merge() is c.base for c in m.modules() if type(c) is Adapter]
    with disabled(m): y3 = m(x)
    return y0, y1, y2, y3, feats, merged, [n for n, p in m.named_parameters() if p.requires_grad]
CALLS = ["(torch.ones(2,2), 1, {'0'})", "(torch.ones(1,3), 2, ['0','1'])", "(torch.zeros(1,3), 2, ())", "(torch.arange(4.), 1, '0')"]
