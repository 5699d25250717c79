import torch
import torch.nn.functional as F

class Schedule:
    _cache = {}
    def __new__(cls, kind, steps):
        key = (kind, steps)
        if key not in cls._cache:
            obj = super().__new__(cls)
            obj._built = False
            cls._cache[key] = obj
        return cls._cache[key]
    def __init__(self, kind, steps):
        if self._built:
            return
        self._built = True
        if kind == 'linear':
            betas = torch.linspace(1e-4, 0.02, steps)
        elif kind == 'cosine':
            t = torch.arange(steps + 1) / steps
            f = torch.cos((t + 0.008) / 1.008 * torch.pi / 2) ** 2
            betas = (1 - f[1:] / f[:-1]).clamp(max=0.999)
        else:
            raise ValueError(f'unknown schedule {kind!r}')
        self.betas = betas
        self.alphas = torch.cumprod(1 - betas, 0)
        for name in ('betas', 'alphas'):
            setattr(self, 'sqrt_' + name, getattr(self, name).sqrt())
    def __getattr__(self, name):
        if name.startswith('one_minus_'):
            return 1 - getattr(self, name[len('one_minus_'):])
        raise AttributeError(name)

def program(kind, steps, x, t):
    try:
        s = Schedule(kind, steps)
    except ValueError as e:
        print(e); return str(e), len(Schedule._cache), x * 2
    again = Schedule(kind, steps)
    g = torch.Generator().manual_seed(7)
    noise = torch.randn(x.shape, generator=g)
    a = s.sqrt_alphas[t].view(-1, *[1] * (x.dim() - 1))
    b = s.one_minus_alphas[t].sqrt().view_as(a)
    xt = a * x + b * noise
    x0 = (xt - b * noise) / a
    snr = s.alphas / s.one_minus_alphas
    if (snr[1:] > snr[:-1]).any():
        print('not monotonic')
    err = None
    try:
        s.nothing
    except AttributeError as e:
        err = e.args
    return xt, torch.allclose(x0, x, atol=1e-3), again is s, err, sorted(k for k in vars(s) if k != '_built'), snr.log()[::3]

CALLS = ["('linear', 10, torch.ones(2,3), torch.tensor([0, 9]))", "('cosine', 8, torch.ones(2,3,1), torch.tensor([3, 3]))", "('sigmoid', 8, torch.ones(2), torch.tensor([0]))",
 "('linear', 10, torch.ones(1,2), torch.tensor([10]))", "('linear', 5, torch.zeros(0,2), torch.zeros(0, dtype=torch.long))", "('sigmoid', 8, torch.ones(2), torch.tensor([0]))"]
