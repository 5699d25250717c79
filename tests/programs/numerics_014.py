import torch
from torch import nn

def remap(sd, rules):
    out = {}
    for k, v in sd.items():
        for old, new in rules:
            if k.startswith(old):
                k = new + k.removeprefix(old)
                break
        else:
            print('unmapped', k)
        if k in out:
            raise KeyError(k)
        out[k] = v
    return out

class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.lin = nn.Linear(d, d)
        self.register_buffer('count', torch.tensor(0))
    def forward(self, x):
        self.count.add_(1)
        return x + self.lin(x).tanh()
    def _load_from_state_dict(self, sd, prefix, *args):
        key = prefix + 'count'
        if key in sd and sd[key].item() > 2:
            sd[key] = torch.zeros_like(sd[key])
        return super()._load_from_state_dict(sd, prefix, *args)

def program(x, rules, n=3, strict=True):
    torch.manual_seed(0)
    src = nn.ModuleDict({'a': Block(x.shape[-1]), 'b': Block(x.shape[-1])})
    for i in range(n):
        x = src['ab'[i % 2]](x)
    dst = nn.ModuleDict({'first': Block(x.shape[-1]), 'second': Block(x.shape[-1])})
    sd = remap(src.state_dict(), rules)
    try:
        result = dst.load_state_dict(sd, strict=strict)
    except RuntimeError as e:
        result = str(e).splitlines()[0]
    y = x
    for name, block in dst.items():
        y = block(y)
    return y, result, {k: b.count.item() for k, b in dst.items()}, list(sd)

CALLS = ["(torch.ones(1,2), [('a.', 'first.'), ('b.', 'second.')])", "(torch.ones(1,2), [('a.', 'first.'), ('b.', 'second.')], 7)",
 "(torch.ones(1,2), [('a.', 'first.')], 2, False)", "(torch.ones(1,2), [('a.', 'first.')], 2)", "(torch.ones(1,2), [('a.', 'x.'), ('b.', 'x.')])"]
