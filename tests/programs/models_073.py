import torch, torch.nn as nn
class Share(nn.Module):
    def __init__(self, d, n, tie):
        super().__init__()
        blk = nn.Linear(d, d)
        self.layers = nn.ModuleList([blk] * n if tie else [nn.Linear(d, d) for _ in range(n)])
        self.gates = nn.ParameterList(torch.full((), float(i)) for i in range(n))
        self.alias = self.layers[0] if n else nn.Identity()
    def forward(self, x, mem=[]):
        for l, g in zip(self.layers, self.gates):
            x = torch.sigmoid(g) * l(x) + x
            mem.append(x.detach().norm().item())
        return self.alias(x), mem
def program(x, n, tie):
    torch.manual_seed(0)
    m = Share(x.shape[-1], n, tie)
    y, mem = m(x)
    y.sum().backward()
    if len(mem) > 3: print('memory grows', len(mem))
    g = [None if p.grad is None else p.grad for p in m.parameters()]
    ids = len({id(p) for l in m.layers for p in l.parameters()})
    sd = m.state_dict()
    _, mem2 = m(x, [])
    return y, len(mem), g, ids, len(sd), mem is m.forward.__defaults__[0], len(mem2), [k for k, _ in m.named_modules(remove_duplicate=False)], m.alias is m.layers[-1] if n else None
CALLS = ["(torch.ones(2,2), 2, True)", "(torch.ones(2,2), 2, False)", "(torch.ones(1,3), 0, True)", "(torch.ones(1,2), 3, True)"]
