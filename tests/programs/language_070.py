import torch
from math import gcd, lcm, comb, isqrt, factorial, hypot, fsum, prod, frexp, ldexp, copysign, nextafter, isnan, fmod, remainder
import cmath

class Poly:
    def __init__(self, *c): self.c = tuple(c)
    def __call__(self, x):
        r = 0
        for k in reversed(self.c): r = r * x + k
        return r
    def __mul__(self, o):
        if not isinstance(o, Poly): return Poly(*(k * o for k in self.c))
        out = [0] * (len(self.c) + len(o.c) - 1)
        for i, a in enumerate(self.c):
            for j, b in enumerate(o.c): out[i + j] += a * b
        return Poly(*out)
    __rmul__ = __mul__
    def __pow__(self, n): return Poly(1) if n == 0 else self * self ** (n - 1)
    def derivative(self): return Poly(*(i * k for i, k in enumerate(self.c) if i)) if len(self.c) > 1 else Poly(0)
    def __repr__(self):
        sup = str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹')
        s = ' + '.join(f'{k}x{str(i).translate(sup)}' if i else f'{k}' for i, k in enumerate(self.c) if k)
        return (s or '0').replace('+ -', '- ')
    def __hash__(self): return hash(self.c)
    def __eq__(self, o): return isinstance(o, Poly) and self.c == o.c

def newton(p, x, n):
    d = p.derivative()
    for i in range(n):
        step = p(x) / d(x)
        x = x - step
        if step.abs().max() < 1e-3:
            return x, i
    return x, -1

def program(x, coef, n):
    p = Poly(*coef)
    q = p ** 2 * Poly(0, 1)
    try:
        root, it = newton(p, x, n)
    except (AttributeError, RuntimeError, ZeroDivisionError) as e:
        print(repr(p), type(e).__name__)
        root, it = str(e)[:30], None
    a, b = len(coef) + 3, n + 1
    nums = [gcd(a, b), lcm(a, b), comb(a, 2), isqrt(a * b), prod(coef) if coef else 1, fsum([.1] * 10), hypot(a, b), frexp(a), ldexp(.5, b), copysign(0., -a), fmod(-a, 3), remainder(a, 4), -a // 3, -a % 3, divmod(-7, b), round(2.5), round(-1.55, 1), a ** -b, (-8) ** (1 / 3), int('ff', 16), 1e16 + 1, a / b, ~a, a << 3 ^ b, 7 .bit_length(), (0.1).hex(), (0.5).as_integer_ratio(), cmath.sqrt(-a)]
    return root, it, repr(p), repr(q), q(x), p.derivative() == Poly(*(i * k for i, k in enumerate(coef))[1:]) if False else p.derivative().c, nums, {p: 1}.get(Poly(*coef)), 3 * p == p * 3

CALLS = ["(torch.tensor([1., 3.]), (-2, 0, 1), 5)", "(torch.ones(1), (5,), 2)", "(torch.arange(2.) + 1, (0, 1), 3)", "(torch.ones(2), (), 1)", "(torch.tensor([0.5]), (1, -3, 0, 2), 0)"]
