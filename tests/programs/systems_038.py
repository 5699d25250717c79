import torch
from itertools import zip_longest
from functools import reduce

class Poly:
    def __init__(self, *c):
        c = list(c)
        while c and c[-1] == 0: c.pop()
        self.c = tuple(c)
    x = property(lambda self: Poly(0, 1))
    deg = property(lambda s: len(s.c) - 1)
    def __call__(self, v): return reduce(lambda acc, c: acc * v + c, reversed(self.c), v * 0)
    def __add__(self, o):
        o = o if isinstance(o, Poly) else Poly(o)
        return Poly(*(a + b for a, b in zip_longest(self.c, o.c, fillvalue=0)))
    __radd__ = __add__
    def __neg__(self): return Poly(*(-a for a in self.c))
    def __sub__(self, o): return self + (-o)
    def __mul__(self, o):
        if not isinstance(o, Poly): return Poly(*(a * o for a in self.c))
        r = [0] * max(len(self.c) + len(o.c) - 1, 0)
        for i, a in enumerate(self.c):
            for j, b in enumerate(o.c): r[i + j] += a * b
        return Poly(*r)
    __rmul__ = __mul__
    def __divmod__(self, o):
        q, r = Poly(), self
        if not o.c: raise ZeroDivisionError('polynomial division by zero')
        while r.deg >= o.deg:
            t = Poly(*[0] * (r.deg - o.deg), r.c[-1] / o.c[-1])
            q, r = q + t, Poly(*(r - t * o).c[:r.deg])
        return q, r
    def __floordiv__(self, o): return divmod(self, o)[0]
    def __mod__(self, o): return divmod(self, o)[1]
    def __pow__(self, n): return reduce(Poly.__mul__, [self] * n, Poly(1))
    def __eq__(self, o): return self.c == (o.c if isinstance(o, Poly) else Poly(o).c)
    __hash__ = None
    def diff(self): return Poly(*(i * a for i, a in enumerate(self.c)))  if 0 else Poly(*[i * a for i, a in enumerate(self.c)][1:])
    def __str__(self):
        parts = [('-' if a < 0 else '+') + (f'{abs(a):g}' if abs(a) != 1 or not i else '') + ('', 'x')[i > 0] + (f'^{i}' if i > 1 else '') for i, a in list(enumerate(self.c))[::-1] if a]
        return ' '.join(parts).lstrip('+') or '0'

def program(p, q, t):
    P, Q = Poly(*p), Poly(*q)
    res = {'p': str(P), 'mul': str(P * Q), 'sum': str(sum([P, Q])), 'eval': P(t), 'd': P.diff()(t), 'pow': (P ** 2).c}
    try: res['divmod'] = tuple(map(str, divmod(P, Q)))
    except ZeroDivisionError as e: print(e); res['divmod'] = e.args
    try: {P}
    except TypeError as e: res['hash'] = str(e)
    x = t
    for k in range(5):
        d = P.diff()(x)
        if (d == 0).any(): res['newton'] = f'flat at {k}'; break
        x = x - P(x) / d
    else: res['newton'] = x
    return res, P == Q, P * 0 == 0, P.deg, P.x.c, (P - P).deg

CALLS = ["((-2, 0, 1), (1, 1), torch.tensor([1., 2.]))", "((), (), torch.ones(2))", "((1, -3, 0.5, 2), (0,), torch.tensor([[3.]]))", "((5,), (2, 0, 0), torch.zeros(1))", "((True, False), (1,2,3), torch.arange(1,4))"]
