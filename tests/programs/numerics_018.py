import torch
from torch import nn
from torch.nn.utils import parametrize

class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).mT
    def right_inverse(self, w):
        return w.triu()

class Unit(nn.Module):
    def forward(self, w):
        return w / w.norm().clamp(min=1e-6)

def program(x, unit, k=2):
    torch.manual_seed(0)
    lin = nn.Linear(x.shape[-1], x.shape[-1])
    parametrize.register_parametrization(lin, 'weight', Symmetric())
    if unit:
        parametrize.register_parametrization(lin, 'weight', Unit())
    outs = []
    with parametrize.cached():
        for _ in range(k):
            x = lin(x)
            outs.append(x)
            if x.norm().item() > 4:
                print('growing')
    sym = torch.equal(lin.weight, lin.weight.T)
    names = [n for n, _ in lin.named_parameters()]
    lin.weight = torch.eye(lin.in_features)
    y = lin(x)
    parametrize.remove_parametrizations(lin, 'weight')
    return outs, sym, names, y, type(lin).__name__, lin.weight

CALLS = ["(torch.ones(1,3), False)", "(torch.ones(1,3), True)", "(torch.ones(1,3)*20, True, 3)", "(torch.ones(2), False, 0)"]
