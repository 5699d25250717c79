import torch
from torch import nn
import torch.nn.utils.parametrize as P

class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)
    def right_inverse(self, A):
        return A.triu()

class Scale(nn.Module):
    def __init__(self, s):
        super().__init__(); self.s = s; self.count = 0
    def forward(self, w):
        self.count += 1
        return w * self.s

def program(n, s, x, cached):
    torch.manual_seed(0)
    lin = nn.Linear(n, n)
    w0 = lin.weight.detach().clone()
    P.register_parametrization(lin, 'weight', Symmetric())
    sc = Scale(s)
    P.register_parametrization(lin, 'bias', sc)
    print(type(lin).__name__, P.is_parametrized(lin, 'weight'))
    if cached:
        with P.cached():
            y = lin(x) + lin(x)
    else:
        y = lin(x) + lin(x)
    sym = torch.equal(lin.weight, lin.weight.T)
    c = sc.count
    try:
        lin.weight = torch.ones(n, n)
    except Exception as e:
        print('assign', type(e).__name__)
    names = sorted(dict(lin.named_parameters()))
    P.remove_parametrizations(lin, 'weight')
    return y, sym, c > 0, names, lin.weight.detach(), isinstance(lin, nn.Linear), sorted(lin.state_dict()), w0

CALLS = ["(3, 2.0, torch.ones(2,3), False)", "(3, 0.5, torch.ones(2,3), True)", "(2, 0., torch.arange(2.), True)", "(2, 1.0, torch.ones(2,3), False)", "(1, 1., torch.ones(0,1), True)"]
