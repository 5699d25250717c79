import torch, bisect, decimal
class Spline:
    def __init__(self, xs, ys):
        if list(xs) != sorted(set(xs)): raise ValueError('knots must increase')
        self.x, self.y = torch.tensor(xs, dtype=torch.float64), torch.tensor(ys, dtype=torch.float64)
        n = len(xs); h = self.x.diff(); A = torch.eye(n, dtype=torch.float64); r = torch.zeros_like(A[0]) if n else None
        for i in range(1, n - 1):
            A[i, i - 1:i + 2] = torch.stack([h[i - 1], 2 * (h[i - 1] + h[i]), h[i]])
            r[i] = 6 * ((self.y[i + 1] - self.y[i]) / h[i] - (self.y[i] - self.y[i - 1]) / h[i - 1])
        self.m, self.h, self.knots = torch.linalg.solve(A, r), h, xs
    def __call__(self, t, /, *, clamp=False):
        if torch.is_tensor(t) and t.ndim: return torch.stack([self(u, clamp=clamp) for u in t.unbind()]) if len(t) else t
        t = float(t)
        if clamp: t = min(max(t, self.knots[0]), self.knots[-1])
        i = min(max(bisect.bisect(self.knots, t) - 1, 0), len(self.h) - 1)
        a, b, h = self.x[i + 1] - t, t - self.x[i], self.h[i]
        m0, m1, y0, y1 = self.m[i], self.m[i + 1], self.y[i], self.y[i + 1]
        return (m0 * a ** 3 + m1 * b ** 3) / (6 * h) + (y0 / h - m0 * h / 6) * a + (y1 / h - m1 * h / 6) * b
def program(xs, ys, t):
    try: s = Spline(xs, ys)
    except (ValueError, TypeError, RuntimeError) as e: return type(e).__name__, str(e)[:30]
    try: v = s(t)
    except IndexError as e: return 'index', s.m
    d = [decimal.Decimal(u).quantize(decimal.Decimal('.001'), rounding=decimal.ROUND_HALF_EVEN) for u in v.reshape(-1).tolist()]
    print(*d)
    try: s(t=t)
    except TypeError as e: err = str(e)
    return v, s(t, clamp=True), s.m, sum(d), err, max(d, default=decimal.Decimal('NaN'))
CALLS = ["([0.,1.,2.,3.], [0.,1.,0.,1.], torch.tensor([.5,1.5,4.]))", "([0.,0.,1.], [1.,2.,3.], 0.)", "([0.,2.], [1.,3.], 1)", "([], [], 0.)", "([0.,1.], [1.,1.], torch.zeros(0))", "([1.], [2.], 1.)"]
