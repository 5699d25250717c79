import torch
class Interp:
    def __init__(self, xs, ys, fill='raise'): self.xs, self.ys, self.fill = xs, ys, fill
    def __call__(self, q):
        scalar = not torch.is_tensor(q); q = torch.as_tensor(q, dtype=self.xs.dtype)
        i = torch.searchsorted(self.xs, q).clamp(1, len(self.xs) - 1)
        x0, x1, y0, y1 = self.xs[i - 1], self.xs[i], self.ys[i - 1], self.ys[i]
        out = y0 + (q - x0) / (x1 - x0) * (y1 - y0)
        bad = (q < self.xs[0]) | (q > self.xs[-1])
        if bad.any():
            if self.fill == 'raise': raise ValueError(f'{bad.sum().item()} of {bad.numel()} out of range')
            if isinstance(self.fill, tuple): out = torch.where(q < self.xs[0], torch.tensor(self.fill[0]), out); out = torch.where(q > self.xs[-1], torch.tensor(self.fill[1]), out)
            elif self.fill is not None: out = out.masked_fill(bad, self.fill)
        return out.item() if scalar else out
    def inverse(self): 
        o = self.ys.argsort(); return type(self)(self.ys[o], self.xs[o], fill=self.fill)
    def __sub__(self, o):
        x = torch.cat([self.xs, o.xs]).unique(); return Interp(x, self(x) - o(x))
    @property
    def area(self): return torch.trapezoid(self.ys, self.xs)
def program(xs, ys, q, fill):
    f = Interp(xs, ys, fill); out = []
    for v in (q, 0.5, xs):
        try: out.append(f(v))
        except (ValueError, IndexError, RuntimeError) as e: out.append(f'{type(e).__name__}: {e}'[:45])
    try: inv = f.inverse()(f(xs)); d = (f - f.inverse()).area
    except (ValueError, IndexError, RuntimeError) as e: inv = d = type(e).__name__; print(d)
    return out, inv, d, f.area, inv is d
CALLS = ["(torch.tensor([0.,1.,2.]), torch.tensor([0.,1.,4.]), torch.tensor([.5,1.5]), 'raise')", "(torch.tensor([0.,1.]), torch.tensor([1.,0.]), torch.tensor([-1.,2.]), (-9.,9.))", "(torch.tensor([0.,1.,3.]), torch.tensor([0.,0.,1.]), torch.tensor([[5.,.1]]), None)", "(torch.zeros(1), torch.ones(1), torch.zeros(0), 0.)", "(torch.tensor([0.,1.]), torch.tensor([0.,2.]), 7, float('nan'))"]
