import torch
from torch import nn

class Lazy(nn.Module):
    def __init__(self, out):
        super().__init__()
        self.proj = nn.LazyLinear(out)
        self.bn = nn.LazyBatchNorm1d()
        self.heads = nn.ModuleDict()
        self._order = []
    def head(self, name):
        if name not in self.heads:
            print('new head', name)
            self.heads[name] = nn.Linear(self.proj.out_features, 1)
            nn.init.constant_(self.heads[name].weight, len(self.heads))
            self._order.append(name)
        return self.heads[name]
    def forward(self, x, **flags):
        h = self.bn(torch.relu(self.proj(x)))
        return {k: self.head(k)(h) for k, v in flags.items() if v}

def program(x, names, evil):
    torch.manual_seed(0)
    m = Lazy(3)
    before = type(m.proj).__name__, m.proj.has_uninitialized_params()
    try:
        y = m(x, **{n: True for n in names})
    except ValueError as e:
        print(type(e).__name__); m.eval()
        y = m(x, **{n: True for n in names})
    after = type(m.proj).__name__, tuple(m.proj.weight.shape), m.bn.num_features
    m.train(False)
    z = m(x, extra=1, **dict.fromkeys(names, False))
    err = None
    try:
        m(torch.ones(2, x.shape[1] + 1), a=1)
    except RuntimeError as e:
        err = 'shapes cannot be multiplied' in str(e)
    if evil:
        try:
            m.heads[evil] = nn.Identity()
        except (KeyError, TypeError) as e:
            err = (type(e).__name__, str(e))
    popped = m.heads.pop('extra')
    m.heads.update({'z': popped})
    return y, z, before, after, err, list(m.heads.keys()), m.heads['z'] is popped, m._order, m.bn.num_batches_tracked, [n for n, _ in m.named_modules()]

CALLS = ["(torch.arange(8.).reshape(4,2), ['a','b'], '')", "(torch.ones(1,3), ['a'], 'x.y')", "(torch.ones(2,5), [], 'pop')", "(torch.ones(0,2), ['b','a'], '')", "(torch.ones(2,3), ['keys'], 'q')"]
