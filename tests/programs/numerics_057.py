import torch
from collections import namedtuple

SIR = namedtuple('SIR', 's i r')
class Params(namedtuple('Params', ['beta', 'gamma', 'dt'], defaults=[0.5])):
    __slots__ = ()
    @property
    def r0(self): return self.beta / self.gamma

def deriv(y, p):
    new = p.beta * y.s * y.i
    rec = p.gamma * y.i
    return SIR(-new, new - rec, rec)

def axpy(a, x, y): return SIR(*(yi + a * xi for xi, yi in zip(x, y)))

def rk4(y, p):
    k1 = deriv(y, p)
    k2 = deriv(axpy(p.dt / 2, k1, y), p)
    k3 = deriv(axpy(p.dt / 2, k2, y), p)
    k4 = deriv(axpy(p.dt, k3, y), p)
    return SIR._make(yi + p.dt / 6 * (a + 2*b + 2*c + d) for yi, a, b, c, d in zip(y, k1, k2, k3, k4))

def program(i0, p, steps):
    y = SIR(1 - i0, i0, torch.zeros_like(i0))
    peak, hist = (0, -1.0), [y]
    for t in range(steps):
        y = rk4(y, p)
        cur = y.i.max().item()
        peak = max(peak, (t, cur), key=lambda q: q[1])
        hist.append(y)
        if cur > 0.3 and p.beta > 0.1:
            p = p._replace(beta=p.beta / 2)
            print('lockdown at', t, p)
    final = SIR(*map(torch.stack, zip(*hist)))
    return final, peak, p, p.r0, y._asdict(), SIR._fields, Params._field_defaults

CALLS = ["(torch.tensor([.01,.1]), Params(2., .5), 4)", "(torch.tensor([.01,.1]), Params(2., .5), 4)", "(torch.tensor([.4]), Params(3., .1, .1), 3)", "(torch.tensor([0]), Params(1., 0), 1)", "(torch.zeros(1), Params(1., 1), 0)"]
