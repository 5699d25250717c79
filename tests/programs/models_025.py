import torch, torch.nn as nn
from torch.func import functional_call
class Hyper(nn.Module):
    def __init__(self, target, z):
        super().__init__()
        self.__dict__['target'] = target
        self.spec = [(n, p.shape, p.numel()) for n, p in target.named_parameters()]
        self.gen = nn.Linear(z, sum(s[-1] for s in self.spec))
    def params(self, z):
        flat = self.gen(z)
        return {n: c.view(s) for (n, s, _), c in zip(self.spec, flat.split([k for *_, k in self.spec]))}
    def forward(self, x, z): return functional_call(self.target, self.params(z), (x,))
class Target(nn.Module):
    shift = 0.5
    def __init__(self, i):
        super().__init__(); self.l = nn.Linear(i, 3); self.s = nn.Parameter(torch.ones(()))
    def forward(self, x):
        if self.s > 0: return self.l(x) * self.s
        return self.l(x) - self.shift
def program(x, zs):
    torch.manual_seed(8)
    t = Target(x.shape[-1]); h = Hyper(t, zs.shape[-1])
    before = [p.detach().clone() for p in t.parameters()]
    outs = [h(x, z) for z in zs]
    print(len(outs), [n for n, _ in h.named_parameters()])
    if outs: torch.stack(outs).square().mean().backward()
    same = all(torch.equal(a, b) for a, b in zip(before, t.parameters()))
    return outs, same, t.l.weight.grad, h.gen.weight.grad, h.spec, list(dict(h.named_modules()))
CALLS = ["(torch.ones(2,2), torch.tensor([[1.,2.],[-3.,1.]]))", "(torch.ones(1,4), torch.zeros(0,3))", "(torch.arange(3.), torch.eye(3)*10)"]
