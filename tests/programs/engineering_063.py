import torch
class Meters(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.lin = torch.nn.ModuleDict({'a': torch.nn.Linear(d, d), 'b': torch.nn.Identity()})
        self.register_buffer('seen', torch.zeros(d))
        self.order = []
        with torch.no_grad():
            for p in self.parameters(): p.fill_(.5)
    def forward(self, x, *, path=('a', 'b')):
        for k in path:
            x = self.lin[k](x)
            if x.mean() > 2: self.order.append(k); break
        else:
            self.order.append(None)
        self.seen += x.detach().sum(0)
        return x
def program(x, n):
    m = Meters(x.shape[1])
    outs = []
    h = m.lin['a'].register_forward_hook(lambda mod, inp, out: outs.append(out.sum().item()) or out + 1)
    for i in range(n):
        x = m(x)
        if i == 1: h.remove()
    return x, m.order, m.seen, outs, [k for k, _ in m.named_modules()], len(m.lin['a']._forward_hooks)
CALLS = ["(torch.ones(2,2), 3)", "(torch.zeros(1,3), 2)", "(-torch.ones(1,1), 0)"]
