import torch
class Observer:
    qmin, qmax = -128, 127
    def __init__(self): self.lo = self.hi = None
    def __call__(self, x):
        if x.numel():
            lo, hi = x.aminmax()
            self.lo = lo if self.lo is None else torch.minimum(self.lo, lo)
            self.hi = hi if self.hi is None else torch.maximum(self.hi, hi)
        return x
    @property
    def qparams(self):
        if self.lo is None: raise RuntimeError('observer never ran')
        scale = ((self.hi - self.lo) / (self.qmax - self.qmin)).clamp(min=1e-6)
        zp = self.qmin - torch.round(self.lo / scale)
        return scale, zp.clamp(self.qmin, self.qmax).int()
class PerChannel(Observer):
    def __call__(self, x):
        self.parts = getattr(self, 'parts', []) + [Observer() for _ in range(x.shape[0])][len(getattr(self, 'parts', [])):]
        for o, r in zip(self.parts, x): o(r)
        return super().__call__(x)
def fake(x, s, z): return (torch.clamp(torch.round(x / s) + z, -128, 127) - z) * s
def program(batches):
    o, pc, err = Observer(), PerChannel(), None
    try: o.qparams
    except RuntimeError as e: err = f'{e!s:.12}'
    for b in batches: pc(o(b))
    try: s, z = o.qparams
    except RuntimeError as e: return err, e.args, vars(pc)
    q = [fake(b, s, z) for b in batches]
    d = max((float((a - b).abs().max()) for a, b in zip(q, batches) if a.numel()), default=None)
    print(f'{s.item():.5f} {z.item():+d}')
    return q, s, z, d, err, [p.qparams for p in pc.parts if p.lo is not None], o.lo is pc.lo
CALLS = ["([torch.arange(6.).reshape(2,3), -torch.ones(2,3)],)", "([],)", "([torch.zeros(2,2)],)", "([torch.ones(0,2), torch.linspace(-3,5,8).reshape(4,2)],)"]
