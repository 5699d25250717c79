import torch
class Dual:
    __array_priority__ = 10
    def __init__(self, v, d=None): self.v = torch.as_tensor(v, dtype=torch.float64); self.d = torch.zeros_like(self.v) if d is None else torch.as_tensor(d, dtype=torch.float64)
    @staticmethod
    def lift(o): return o if isinstance(o, Dual) else Dual(o)
    def __add__(self, o): o = self.lift(o); return Dual(self.v + o.v, self.d + o.d)
    __radd__ = __add__
    def __neg__(self): return Dual(-self.v, -self.d)
    def __sub__(self, o): return self + -self.lift(o)
    def __rsub__(self, o): return self.lift(o) - self
    def __mul__(self, o): o = self.lift(o); return Dual(self.v * o.v, self.v * o.d + self.d * o.v)
    __rmul__ = __mul__
    def __truediv__(self, o): return self * self.lift(o) ** -1
    def __pow__(self, n): return Dual(self.v ** n, n * self.v ** (n - 1) * self.d)
    def __abs__(self): return self if self.v >= 0 else -self
    def __lt__(self, o): return bool(self.v < self.lift(o).v)
    def __float__(self): return float(self.v)
    def __round__(self, n=None): return round(float(self), n)
    def sin(self): return Dual(self.v.sin(), self.v.cos() * self.d)
def derive(f, x):
    try: y = f(Dual(x, 1.))
    except Exception as e: return type(e).__name__, str(e)[:50]
    return (y.v, y.d) if isinstance(y, Dual) else y
FUNCS = dict(poly=lambda x: 3 * x ** 2 - 2 / x + 1, absin=lambda x: abs(x.sin()) * x, clip=lambda x: max(x, Dual(0.), 1), tens=lambda x: torch.tensor(2.) * x, mod=lambda x: x % 2, total=lambda x: sum([x, x, x]), srt=lambda x: sorted([x, -x, Dual(0)])[0])
def program(x, names):
    out = {}
    for n in names:
        out[n] = derive(FUNCS[n], x)
        if isinstance(out[n], tuple) and isinstance(out[n][1], str): print(n, out[n])
    return out, round(Dual(x), 2), Dual(1) < Dual(x), 5 > Dual(x)
CALLS = ["(2.5, ['poly','absin','clip'])", "(-1., ['poly','absin','clip','tens','mod','total','srt'])", "(0., ['poly','total','srt'])", "(torch.tensor(3), ['tens','mod'])", "(torch.ones(2), ['total'])"]
