import torch
from torch import nn

class HyperNet(nn.Module):
    """generates weights for a target layer; weights are plain attributes"""
    def __init__(self, z, i, o):
        super().__init__()
        self.gen = nn.Linear(z, i * o)
        self.target = nn.Linear(i, o)
        w = self.target.weight
        del self.target.weight
        self.shape = w.shape
        self.cache = {}
    def forward(self, z, x):
        key = tuple(z.tolist())
        if key in self.cache:
            print('hit')
            w = self.cache[key]
        else:
            w = self.cache[key] = self.gen(z).view(self.shape)
        self.target.weight = w
        return self.target(x)
    def extra_repr(self): return f'cached={len(self.cache)}'
    def __setstate__(self, s): super().__setstate__(s)

def program(zs, x, o):
    torch.manual_seed(0)
    h = HyperNet(len(zs[0]), x.shape[-1], o)
    ys = []
    for z in zs:
        ys.append(h(z, x))
    names = [n for n, _ in h.named_parameters()]
    loss = sum(y.sum() for y in ys)
    loss.backward()
    isp = isinstance(h.target.weight, nn.Parameter), h.target.weight is list(h.cache.values())[-1] if h.cache else None
    try:
        h.target.weight = nn.Parameter(torch.ones(o, x.shape[-1]))
        isp += ('weight' in h.target._parameters, 'weight' in h.target.__dict__)
        h.target.bias = torch.zeros(o)
    except (TypeError, KeyError) as e:
        isp += (str(e),)
    h.target.register_parameter('bias', None)
    y2 = h.target(x)
    h.gen.register_parameter('extra', nn.Parameter(torch.ones(1)))
    try:
        h.register_buffer('gen', torch.ones(1))
    except KeyError as e:
        print(e)
    return ys, h.gen.weight.grad, names, isp, y2, repr(h), list(h.gen.state_dict()), hasattr(h.target, 'weight')

CALLS = ["([torch.ones(2), torch.zeros(2)], torch.ones(3,2), 2)", "([torch.ones(2), torch.ones(2)], torch.ones(1,3), 1)", "([torch.ones(1)], torch.ones(0,2), 2)", "([torch.zeros(0)], torch.ones(2), 2)", "([torch.ones(1), torch.ones(2)], torch.ones(2), 2)"]
