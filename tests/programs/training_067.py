import torch
from torch import nn

class SpectralCap(nn.Module):
    """power-iteration norm kept in buffers, updated in training only"""
    def __init__(self, lin, n=1):
        super().__init__()
        self.lin, self.n = lin, n
        u = torch.ones(lin.out_features)
        self.register_buffer('u', u / u.norm())
        self.register_buffer('_sigma', torch.zeros(()), persistent=False)
    @property
    def sigma(self):
        return self._sigma.item()
    @sigma.setter
    def sigma(self, v):
        self._sigma.fill_(v)
    @torch.no_grad()
    def power(self):
        W = self.lin.weight
        for _ in range(self.n):
            v = nn.functional.normalize(W.T @ self.u, dim=0)
            self.u.copy_(nn.functional.normalize(W @ v, dim=0))
        self.sigma = (self.u @ W @ v).item()
    def forward(self, x):
        if self.training:
            self.power()
        w = self.lin.weight / max(self.sigma, 1.0)
        return nn.functional.linear(x, w, self.lin.bias)
    def train(self, mode=True):
        print('mode', mode)
        return super().train(mode)
    def _apply(self, fn, recurse=True):
        self.applied = getattr(self, 'applied', 0) + 1
        return super()._apply(fn, recurse)

def program(x, scale, n):
    torch.manual_seed(0)
    lin = nn.Linear(x.shape[-1], 3)
    with torch.no_grad(): lin.weight.mul_(scale)
    m = SpectralCap(lin, n)
    ys = [m(x)]
    m.eval(); ys.append(m(x)); s1 = m.sigma
    m.train(); ys.append(m(x)); s2 = m.sigma
    try:
        m.sigma = 'x'
    except TypeError as e: err = type(e).__name__
    m.double()
    try: ys.append(m(x.double()))
    except RuntimeError as e: ys.append(str(e)[:20])
    from torch.nn.utils import parametrizations as PZ
    o = PZ.orthogonal(nn.Linear(2, 2)); wn = PZ.weight_norm(nn.Linear(2, 1))
    q = o.weight
    eye = torch.allclose(q @ q.T, torch.eye(2), atol=1e-4)
    before = wn.parametrizations.weight.original0.clone()
    with torch.no_grad(): wn.parametrizations.weight.original0.mul_(2)
    return ys, round(s1, 4), round(s2, 4), err, m.applied, list(m.state_dict()), m.u.dtype, eye, wn.weight.norm() / before.norm(), m.training, 'sigma' in m.__dict__

CALLS = ["(torch.ones(2,2), 5., 1)", "(torch.ones(2,2), .1, 3)", "(torch.ones(3), 2., 0)", "(torch.ones(0,2), 5., 2)", "(torch.ones(1,4), 100., 2)"]
