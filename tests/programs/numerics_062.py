import torch

class Dual:
    def __init__(self, v, d=0.0): self.v, self.d = v, d
    @staticmethod
    def lift(o): return o if isinstance(o, Dual) else Dual(o)
    def __add__(self, o): o = Dual.lift(o); return Dual(self.v + o.v, self.d + o.d)
    def __mul__(self, o): o = Dual.lift(o); return Dual(self.v * o.v, self.v * o.d + self.d * o.v)
    def __sub__(self, o): return self + Dual.lift(o) * -1
    def __pow__(self, n):
        out = Dual(torch.ones_like(self.v))
        for _ in range(n): out = out * self
        return out
    __radd__, __rmul__ = __add__, __mul__
    def __rsub__(self, o): return Dual.lift(o) - self

class NoConvergence(ArithmeticError):
    def __init__(self, x, n): self.x, self.n = x, n; super().__init__(f'no root after {n}')

def newton(f, x, tol=1e-5, max_iter=20):
    for i in range(max_iter):
        y = f(Dual(x, torch.ones_like(x)))
        if y.v.abs().max() < tol: return x, i
        step = y.v / y.d
        if not step.isfinite().all(): raise NoConvergence(x, i)
        x = x - step
    raise NoConvergence(x, max_iter)

POLYS = {'sqrt2': lambda x: x ** 2 - 2, 'cubic': lambda x: 1 - 3 * x + x ** 3, 'none': lambda x: x * x + 1}

def program(name, x, **kw):
    try:
        root, n = newton(POLYS[name], x, **kw)
    except NoConvergence as e:
        print(e)
        return e.x, e.n, e.args, str(e), isinstance(e, ArithmeticError)
    y = x.clone().requires_grad_()
    (g,) = torch.autograd.grad(POLYS[name](Dual(y)).v.sum(), y)
    return root, n, g, POLYS[name](Dual(root)).v

CALLS = ["('sqrt2', torch.tensor([1.,-3.]))", "('sqrt2', torch.tensor([1.,-3.]))", "('cubic', torch.tensor([0.]), max_iter=2)", "('none', torch.tensor([.5]), max_iter=5)", "('sqrt2', torch.tensor([0.]))", "('x', torch.ones(1))"]
