import torch
from decimal import Decimal, ROUND_HALF_EVEN, ROUND_UP, InvalidOperation, localcontext
from fractions import Fraction

class Money:
    RATES = {'EUR': Decimal('1'), 'USD': Decimal('1.0825'), 'JPY': Decimal('163.2')}
    def __init__(self, amount, cur='EUR'):
        self.amount = Decimal(str(amount)) if isinstance(amount, float) else Decimal(amount)
        self.cur = cur
    @property
    def quantum(self): return Decimal(1) if self.cur == 'JPY' else Decimal('0.01')
    def to(self, cur):
        return self if cur == self.cur else Money(self.amount / self.RATES[self.cur] * self.RATES[cur], cur)
    def rounded(self, how=ROUND_HALF_EVEN): return Money(self.amount.quantize(self.quantum, how), self.cur)
    def __add__(self, o): return Money(self.amount + o.to(self.cur).amount, self.cur)
    def __radd__(self, o): return self if o == 0 else NotImplemented
    def __mul__(self, f): return Money(self.amount * Decimal(f.numerator) / f.denominator if isinstance(f, Fraction) else self.amount * Decimal(str(f)), self.cur)
    def __eq__(self, o): return isinstance(o, Money) and self.rounded().amount == o.to(self.cur).rounded().amount
    def __str__(self): return f'{self.rounded().amount:,} {self.cur}'
    def split(self, weights):
        tot, rest, out = sum(weights), self.rounded(), []
        for w in weights:
            part = Money(self.amount * w / tot, self.cur).rounded()
            out.append(part); rest = Money(rest.amount - part.amount, self.cur)
        if out: out[0] = out[0] + rest
        return out

def program(amounts, cur, t, weights):
    ms, errs = [], []
    for a in amounts:
        try: ms.append(Money(*a) if isinstance(a, tuple) else Money(a))
        except InvalidOperation as e: errs.append(type(e).__name__)
        except TypeError as e: errs.append('type')
    total = sum(ms)
    try: conv = total.to(cur)
    except KeyError as e: conv = total; print('no rate', e)
    except AttributeError as e: conv = Money(0); errs.append(str(e))
    with localcontext() as ctx:
        ctx.prec = 6
        third = conv.amount / 3
    parts = conv.split(weights)
    tt = t * float(conv.amount)
    if tt.sum() > 1000: tt = tt / 1000
    return str(conv), str(third), [str(p) for p in parts], tt, errs, Money(1) == Money('1.0825', 'USD'), str(conv * Fraction(1, 7)), str(conv.rounded(ROUND_UP).amount.as_tuple()), torch.tensor([float(p.amount) for p in parts]).cumsum(0)

CALLS = ["([10, '2.345', (5,'USD'), 0.1], 'USD', torch.ones(2), [1,1,1])", "(['x', 3], 'JPY', torch.arange(3.), [2,3])", "([], 'EUR', torch.ones(1), [])", "([1], 'XXX', torch.ones(1), [1,0])", "([None, '1E+3'], 'JPY', torch.ones(1), [7])"]
