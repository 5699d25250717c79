import torch, math

class ParticleFilter:
    def __init__(self, n, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, generator=self.g) * 2
        self.w = torch.full((n,), 1 / n) if n else torch.zeros(0)
        self.resampled = []
    def predict(self, u, noise=.1): self.x = self.x + u + noise * torch.randn(self.x.shape, generator=self.g); return self
    def update(self, z, sigma=.5):
        lik = torch.exp(-((self.x - z) / sigma) ** 2 / 2)
        w = self.w * lik
        if (s := w.sum()) < 1e-12: raise FloatingPointError(f'degenerate at {z:+.1f}')
        self.w = w / s
        return self
    @property
    def ess(self): return 1 / (self.w ** 2).sum()
    def resample(self, t):
        n = len(self.x)
        pos = (torch.rand(1, generator=self.g) + torch.arange(n)) / n
        idx = torch.searchsorted(self.w.cumsum(0), pos).clamp(max=n - 1)
        self.x, self.w = self.x[idx], torch.full((n,), 1 / n)
        self.resampled.append((t, len(set(idx.tolist()))))
    estimate = property(lambda self: ((m := (self.w * self.x).sum()), (self.w * (self.x - m) ** 2).sum().sqrt()))

def program(n, controls, zs, seed=1):
    pf = ParticleFilter(n, seed); est, errs = [], []
    for t, (u, z) in enumerate(zip(controls, zs, strict=False)):
        try: pf.predict(u).update(z)
        except FloatingPointError as e: errs.append(str(e)); print(e); pf.w = torch.ones_like(pf.w) / max(n, 1); continue
        if pf.ess < n / 2: pf.resample(t)
        est.append(pf.estimate)
    m = [round(a.item(), 3) for a, _ in est]
    return est, m, errs, pf.resampled, pf.ess, math.isclose(float(pf.w.sum()), 1, rel_tol=1e-4)

CALLS = ["(50, [1, 1, 1], [1., 2., 3.])", "(10, [0., 0.5], [100., 0.], 3)", "(0, [1], [1.])", "(5, [], [])", "(20, (.1, .2, .3, .4), (0., .5, 1., 1.5), 7)"]
