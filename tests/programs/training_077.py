import torch
from bisect import bisect_right, insort
from fractions import Fraction
from decimal import Decimal

class Piecewise:
    def __init__(self, knots, fs):
        self.knots, self.fs = sorted(knots), fs
    def __call__(self, t):
        return self.fs[bisect_right(self.knots, t)](t)
    def vec(self, x):
        out = torch.empty_like(x)
        edges = [-torch.inf, *self.knots, torch.inf]
        for lo, hi, f in zip(edges, edges[1:], self.fs):
            m = (x >= lo) & (x < hi)
            out[m] = f(x[m])
        return out

def adaptive_simpson(f, a, b, tol, depth=0):
    m = (a + b) / 2
    S = lambda a, b: (b - a) / 6 * (f(a) + 4 * f((a + b) / 2) + f(b))
    whole, left, right = S(a, b), S(a, m), S(m, b)
    if depth > 6:
        print('depth'); return left + right, 1
    if abs(left + right - whole) < tol:
        return left + right, 1
    l, nl = adaptive_simpson(f, a, m, tol / 2, depth + 1)
    r, nr = adaptive_simpson(f, m, b, tol / 2, depth + 1)
    return l + r, nl + nr

def bisect(f, lo, hi, n=20):
    flo = f(lo)
    if not flo * f(hi) < 0: raise ValueError('no sign change')
    for i in range(n):
        mid = 0.5 * (lo + hi)
        if (f(mid) < 0) == (flo < 0): lo = mid
        else: hi = mid
        if hi - lo < 1e-3: break
    return lo, i

def program(x, knots, tol):
    p = Piecewise(knots, [lambda t: t * 0, lambda t: t * t, lambda t: 2 - t][:len(knots) + 1])
    y = p.vec(x)
    one = torch.stack([p(v) for v in x.flatten()]) if x.numel() else x
    area = adaptive_simpson(lambda t: torch.sin(t) * t, torch.tensor(0.), torch.tensor(2.), tol)
    try: root = bisect(lambda t: t ** 3 - x.sum(), torch.tensor(0.), torch.tensor(9.))
    except ValueError as e: root = str(e)
    order = []
    for v in x.flatten(): insort(order, v)
    bins = torch.bucketize(x, torch.tensor(sorted(knots), dtype=x.dtype), right=True)
    exact = sum((Fraction(v).limit_denominator(10) for v in x.flatten().tolist()), Fraction(0))
    money = sum(Decimal(str(round(v, 2))) for v in x.flatten().tolist())
    num = {1: 'int', 2.5: 'f'}.get(x.flatten()[0].item() if x.numel() else None, '?')
    return y, torch.equal(one, y.flatten()), area, root, order, bins, str(exact), str(money), num, x.sum() * float(exact), min(order, default=None), (x.sum() / 3).item().as_integer_ratio()[1] > 1 if x.numel() else None

CALLS = ["(torch.tensor([-1., .5, 1., 3.]), [0, 1], 1e-3)", "(torch.tensor([[2.5, 1.]]), [1.5], 1e-9)", "(torch.zeros(0), [0, 1], 1)", "(torch.tensor([1., 1.]), [], .1)", "(torch.tensor([1., 2.]).double(), [1, 0], .1)"]
