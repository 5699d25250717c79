import torch, torch.nn as nn
from torch.nn.utils import parametrize
class Mask(nn.Module):
    def __init__(self, m):
        super().__init__(); self.register_buffer('m', m)
    def forward(self, w): return w * self.m
def magnitude_mask(w, frac):
    k = int(frac * w.numel())
    if k == 0: return torch.ones_like(w)
    thr = w.detach().abs().flatten().kthvalue(k).values
    return (w.detach().abs() > thr).float()
def sparsity(model):
    z = n = 0
    for mod in model.modules():
        if hasattr(mod, 'weight') and isinstance(mod.weight, torch.Tensor):
            z += (mod.weight == 0).sum().item(); n += mod.weight.numel()
    return z / n if n else 0.0
def program(x, fracs, undo):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(x.shape[-1], 4), nn.GELU(), nn.Linear(4, 2))
    trace, names = [], []
    for f in fracs:
        for i, layer in enumerate(net):
            if not isinstance(layer, nn.Linear): continue
            if parametrize.is_parametrized(layer):
                layer.parametrizations.weight[0].m.mul_(magnitude_mask(layer.weight, f))
            else:
                parametrize.register_parametrization(layer, 'weight', Mask(magnitude_mask(layer.weight, f)))
            names.append((i, type(layer).__name__))
        trace.append(round(sparsity(net), 3))
        y = net(x)
        if y.abs().sum() < 1e-1:
            print('dead at', f); break
    if undo:
        for layer in net:
            if parametrize.is_parametrized(layer, 'weight'):
                parametrize.remove_parametrizations(layer, 'weight', leave_parametrized=True)
    return net(x), trace, names, sorted(net.state_dict()), [type(l).__name__ for l in net], sparsity(net)
CALLS = ["(torch.ones(2,3), [.2,.5], False)", "(torch.arange(4.).reshape(1,4), [.0,.9,1.], True)", "(torch.ones(2,2), [], True)", "(torch.ones(0,2), [.5], True)"]
