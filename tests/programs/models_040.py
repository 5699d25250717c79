import torch
def bisect(f, a, b, tol=1e-4):
    fa, fb = f(a), f(b)
    if fa * fb > 0: raise ValueError('no sign change', float(fa), float(fb))
    while b - a > tol:
        m = (a + b) / 2; fm = f(m)
        a, b, fa = (a, m, fa) if fa * fm <= 0 else (m, b, fm)
    return (a + b) / 2
def newton(f, x, *, tol=1e-5, maxit=20):
    for it in range(maxit):
        x = x.detach().requires_grad_()
        y = f(x); g, = torch.autograd.grad(y, x)
        if g == 0: raise ZeroDivisionError(f'flat at {x.item():g}')
        x = x - y / g
        if y.abs() < tol: return x.detach(), it
    raise ArithmeticError('no convergence', maxit)
def secant(f, x0, x1, n=30):
    while n and abs(x1 - x0) > 1e-5:
        n -= 1
        f0, f1 = f(x0), f(x1)
        x0, x1 = x1, x1 - f1 * (x1 - x0) / (f1 - f0)
    return x1, n
class Poly:
    def __init__(self, *c): self.c = c
    def __call__(self, x):
        acc = 0
        for c in self.c[::-1]: acc = acc * x + c
        return acc
    def __neg__(self): return Poly(*(-c for c in self.c))
    def __eq__(self, o): return isinstance(o, Poly) and self.c == o.c
    __hash__ = None
def program(coeffs, a, b):
    p, out = Poly(*coeffs), {}
    for fn, args in ((bisect, (a, b)), (newton, (b,)), (secant, (a, b))):
        try: out[fn.__name__] = fn(p, *args)
        except (ArithmeticError, ValueError) as e:
            print(fn.__name__, type(e).__name__); out[fn.__name__] = e.args
        except Exception as e: out[fn.__name__] = type(e).__qualname__
    try: {p: 1}
    except TypeError as e: h = str(e)
    return out, -p == Poly(*[-c for c in coeffs]), h, -(-p) != p
CALLS = ["((-2.,0.,1.), torch.tensor(0.), torch.tensor(2.))", "((1.,0.,1.), torch.tensor(-1.), torch.tensor(0.))", "((0.,1.), torch.tensor(-1.,dtype=torch.float64), torch.tensor(3.,dtype=torch.float64))", "((), torch.tensor(0.), torch.tensor(1.))"]
