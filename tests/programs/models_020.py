import torch, torch.nn as nn, math
class VAE(nn.Module):
    class Gauss:
        def __init__(self, mu, lv): self.mu, self.lv = mu, lv
        def sample(self, g=None): return self.mu if g is None else self.mu + (self.lv / 2).exp() * torch.randn(self.mu.shape, generator=g)
        def kl(self): return -.5 * (1 + self.lv - self.mu ** 2 - self.lv.exp()).sum(-1)
        def __matmul__(self, other): return VAE.Gauss((self.mu + other.mu) / 2, torch.logaddexp(self.lv, other.lv) - math.log(2))
        def __iter__(self): yield self.mu; yield self.lv
    def __init__(self, d, z=2):
        super().__init__(); self.e = nn.Linear(d, 2 * z); self.d = nn.Linear(z, d)
    def encode(self, x): return self.Gauss(*self.e(x).chunk(2, -1))
    def forward(self, x, g=None, beta=1.):
        q = self.encode(x)
        r = self.d(q.sample(g))
        rec = (r - x).pow(2).sum(-1)
        return dict(recon=r, elbo=-(rec + beta * q.kl()), q=q)
def program(x, seed, betas):
    torch.manual_seed(4)
    m, outs = VAE(x.shape[-1]), []
    g = seed if seed is None else torch.Generator().manual_seed(seed)
    for b in betas:
        o = m(x, g, beta=b)
        if o['elbo'].mean() < -10: print('low', b)
        outs.append({k: (tuple(v) if isinstance(v, VAE.Gauss) else v) for k, v in o.items()})
    a, b = m.encode(x), m.encode(-x)
    mu, lv = a @ b
    try: a @ 3
    except AttributeError as e: err = str(e)
    return outs, mu, lv, err, VAE.Gauss.__qualname__, isinstance(o['q'], m.Gauss) if betas else None
CALLS = ["(torch.arange(6.).reshape(2,3), 1, [0., 1., .5])", "(torch.ones(1,2), None, [2])", "(torch.ones(3), 0, [])", "(torch.ones(0,2), 2, [1.])"]
