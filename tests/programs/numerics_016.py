import torch
from torch import nn

class Gate(nn.Module):
    calls = 0
    def __init__(self, d):
        super().__init__()
        self.w = nn.Parameter(torch.linspace(-1, 1, d))
        self.register_full_backward_hook(self._bw)
        self.register_forward_pre_hook(self._pre)
        self.seen = []
    @staticmethod
    def _pre(mod, args):
        type(mod).calls += 1
        (x,) = args
        if x.dtype != torch.float32:
            return (x.float(),)
    def _bw(self, mod, gin, gout):
        self.seen.append(round(gout[0].sum().item(), 4))
    def forward(self, x):
        return x * torch.sigmoid(self.w)

def program(x, n):
    Gate.calls = 0
    g = Gate(x.shape[-1])
    h = x.clone()
    if h.is_floating_point():
        h.requires_grad_(True)
    out = h
    for _ in range(n):
        out = g(out)
        if out.sum() < 0.1:
            break
    if out.requires_grad:
        out.sum().backward()
    extra_state = {k: v for k, v in vars(g).items() if k in ('seen', 'training')}
    return out, h.grad, g.w.grad, g.seen, Gate.calls, extra_state

CALLS = ["(torch.ones(2,3), 2)", "(torch.ones(2,3), 2)", "(torch.arange(4), 3)", "(torch.zeros(3), 5)", "(torch.ones(2), 0)"]
