import torch
from torch import nn
from collections import OrderedDict

class Probe:
    def __init__(self, model, *names):
        self.acts = OrderedDict()
        self.handles = []
        for name, mod in model.named_modules():
            if name in names:
                self.handles.append(mod.register_forward_hook(self._make(name)))
    def _make(self, name):
        def hook(mod, args, out):
            self.acts.setdefault(name, []).append(out.detach().abs().max().item())
            if name == 'act':
                return out.clamp(max=1.0)
        return hook
    def __enter__(self):
        return self
    def __exit__(self, *exc):
        for h in self.handles:
            h.remove()
        self.handles.clear()

def build(d):
    torch.manual_seed(0)
    return nn.Sequential(OrderedDict(fc=nn.Linear(d, 3), act=nn.ReLU(), head=nn.Linear(3, 2)))

def program(x, repeat=1):
    model = build(x.shape[-1])
    with Probe(model, 'fc', 'act') as probe:
        for i in range(repeat):
            hooked = model(x * (i + 1))
    plain = model(x)
    if not torch.equal(hooked, plain):
        print('clamp mattered')
    return hooked, plain, probe.acts, len(model.act._forward_hooks), list(probe.acts)[-1]

CALLS = ["(torch.ones(2,4),)", "(torch.ones(2,4)*10, 2)", "(torch.ones(2,4)*10, 2)", "(torch.zeros(1,1), 0)"]
