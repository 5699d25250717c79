import torch
from torch import nn

class Probe:
    """collect activations through forward hooks; usable as context manager"""
    def __init__(self, model, pattern):
        self.acts, self.handles = {}, []
        for name, m in model.named_modules():
            if pattern in type(m).__name__:
                self.handles.append(m.register_forward_hook(self.make(name)))
    def make(self, name):
        def hook(mod, args, out):
            self.acts.setdefault(name, []).append(out.detach().abs().max())
            if out.abs().max() > 2:
                print('clamp', name)
                return out.clamp(-2, 2)
        return hook
    def __enter__(self): return self
    def __exit__(self, et, ev, tb):
        for h in self.handles: h.remove()
        self.handles.clear()
        return et is not None and issubclass(et, ZeroDivisionError)

def program(x, pattern, div):
    torch.manual_seed(0)
    net = nn.Sequential()
    net.add_module('in', nn.Linear(x.shape[-1], 3))
    net.add_module('act', nn.ReLU())
    net.add_module('out', nn.Linear(3, 3))
    with torch.no_grad():
        net.get_submodule('in').weight.fill_(1.)
    pre = net.register_forward_pre_hook(lambda m, a, kw: ((a[0] * 2, *a[1:]), kw), with_kwargs=True)
    res = y = None
    with Probe(net, pattern) as p:
        y = net(x)
        res = y.sum() * (1 / div)
    pre.remove()
    z = net(x)
    return y, res, z, p.acts, len(p.handles), len(net._forward_hooks), torch.equal(y, z)

CALLS = ["(torch.ones(2,3), 'Linear', 1)", "(torch.ones(2,3), 'ReLU', 0)", "(torch.zeros(2,3), '', 2)", "(torch.ones(0,3), 'Linear', 1)", "(torch.ones(3,2)*.1, 'Linear', 0)"]
