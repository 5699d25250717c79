import torch
from torch import nn

class Lora(nn.Module):
    def __init__(self, base, r, alpha=2.0):
        super().__init__()
        self.base = base
        for p in base.parameters():
            p.requires_grad_(False)
        self.A = nn.Parameter(torch.full((r, base.in_features), 0.1))
        self.B = nn.Parameter(torch.zeros(base.out_features, r))
        self.scale = alpha / r
        self.merged = False
    def forward(self, x):
        y = self.base(x)
        return y if self.merged else y + (x @ self.A.T @ self.B.T) * self.scale
    @torch.no_grad()
    def merge(self):
        if not self.merged:
            self.base.weight += self.B @ self.A * self.scale
            self.merged = True

def inject(model, r, names):
    replaced = []
    for name, mod in list(model.named_modules()):
        if isinstance(mod, nn.Linear) and any(n in name for n in names):
            parent_name, _, leaf = name.rpartition('.')
            parent = model.get_submodule(parent_name)
            setattr(parent, leaf, Lora(mod, r))
            replaced.append(name)
    return replaced

class Attn(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q = nn.Linear(d, d); self.k = nn.Linear(d, d); self.v = nn.Linear(d, d)
    def forward(self, x):
        return torch.softmax(self.q(x) @ self.k(x).mT, -1) @ self.v(x)

def program(x, r, names):
    torch.manual_seed(3)
    m = nn.ModuleDict({'attn': Attn(x.shape[-1]), 'mlp': nn.Sequential(nn.Linear(x.shape[-1], 4), nn.GELU(), nn.Linear(4, 2))})
    run = lambda x: m['mlp'](m['attn'](x) + x)
    y0 = run(x)
    replaced = inject(m, r, names)
    y1 = run(x)
    trainable = [n for n, p in m.named_parameters() if p.requires_grad]
    with torch.no_grad():
        for n, p in m.named_parameters():
            if n.endswith('.B'):
                p.fill_(0.5)
    y2 = run(x)
    for mod in m.modules():
        if isinstance(mod, Lora):
            mod.merge()
    y3 = run(x)
    print('close', torch.allclose(y2, y3, atol=1e-5))
    return torch.equal(y0, y1), replaced, trainable, y2, sorted(m.state_dict()), type(m['attn'].q).__name__

CALLS = ["(torch.ones(2,3), 1, ['q','v'])", "(torch.ones(1,2,4), 2, ['mlp'])", "(torch.linspace(0,1,6).reshape(2,3), 2, [])", "(torch.ones(2,3), 0, ['q'])", "(torch.zeros(0,3), 1, [''])"]
