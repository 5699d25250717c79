import torch
from functools import lru_cache

class Rational:
    @lru_cache(maxsize=32)
    def __new__(cls, p, q=1):
        self = super().__new__(cls)
        g = torch.gcd(torch.tensor(p), torch.tensor(q)).item() or 1
        self.p, self.q = p // g, q // g
        return self
    def __add__(self, o): return Rational(self.p * o.q + o.p * self.q, self.q * o.q)
    def __mul__(self, o): return Rational(self.p * o.p, self.q * o.q)
    def __eq__(self, o): return (self.p, self.q) == (o.p, o.q)
    def __hash__(self): return hash((self.p, self.q))
    def __repr__(self): return f'{self.p}/{self.q}'
    def __float__(self): return self.p / self.q

def harmonic(n):
    total = Rational(0)
    for i in range(1, n + 1): total = total + Rational(1, i)
    return total

def program(n, x):
    h = harmonic(n)
    y = x * float(h)
    if y.sum() > 5: print('large', h)
    same = Rational(1, 2) is Rational(1, 2)
    eq = Rational(2, 4) == Rational(1, 2), Rational(2, 4) is Rational(1, 2)
    info = Rational.__new__.cache_info().currsize > 0
    return h, y, same, eq, info, {h: 1}.get(harmonic(n)), h is harmonic(n)

CALLS = ["(3, torch.ones(2))", "(3, torch.ones(2))", "(4, torch.ones(3))", "(5, torch.ones(3))", "(0, torch.ones(1))"]
