import torch

class FakeQuant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, zp, lo, hi):
        q = torch.round(x / scale) + zp
        ctx.save_for_backward((q >= lo) & (q <= hi))
        return (q.clamp(lo, hi) - zp) * scale
    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask, None, None, None, None

class Observer:
    def __init__(self, bits, symmetric):
        self.lo, self.hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if symmetric else (0, (1 << bits) - 1)
        self.symmetric = symmetric
        self.min = self.max = None
        self.n = 0
    def observe(self, x):
        if not x.numel():
            print('nothing to observe'); return self
        mn, mx = torch.aminmax(x)
        if self.min is None:
            self.min, self.max = mn, mx
        else:
            self.min, self.max = torch.minimum(self.min, mn), torch.maximum(self.max, mx)
        self.n += 1
        return self
    def qparams(self):
        if self.symmetric:
            s = torch.max(-self.min, self.max) / self.hi
            zp = 0
        else:
            s = (self.max.clamp(min=0) - self.min.clamp(max=0)) / (self.hi - self.lo)
            zp = int(self.lo - round((self.min.clamp(max=0) / s).item()))
        return s, zp

def program(xs, bits, symmetric):
    obs = Observer(bits, symmetric)
    for x in xs:
        obs.observe(x)
    try:
        s, zp = obs.qparams()
    except (TypeError, ValueError, AttributeError) as e:
        return type(e).__name__, obs.n, [x + 1 for x in xs]
    outs = []
    for x in xs:
        x = x.clone().requires_grad_()
        y = FakeQuant.apply(x * 1.1, s, zp, obs.lo, obs.hi)
        y.sum().backward()
        outs.append((y.detach(), x.grad))
        if (err := (y - x).abs().max().item() if x.numel() else 0) > 0.05:
            print(f'error {err:.3f}')
    q = torch.clamp(torch.round(xs[0] / s) + zp, obs.lo, obs.hi).to(torch.int8)
    return outs, s, zp, q, (obs.lo, obs.hi, obs.n), obs.min is obs.max

CALLS = ["([torch.linspace(-1,2,5)], 8, False)", "([torch.linspace(-1,2,5), torch.ones(2,2)*3], 4, True)", "([torch.zeros(0)], 8, True)", "([torch.zeros(2)], 8, False)", "([torch.ones(1), torch.zeros(0)], 3, False)", "([], 8, True)"]
