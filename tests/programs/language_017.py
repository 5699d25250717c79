import torch
from functools import total_ordering
from dataclasses import dataclass
from fractions import Fraction
from decimal import Decimal, getcontext, localcontext, ROUND_HALF_UP

@total_ordering
@dataclass(eq=False, slots=True)
class Ratio:
    hits: int = 0
    total: int = 0
    def __iadd__(self, other):
        self.hits += other.hits
        self.total += other.total
        return self
    def __add__(self, other):
        if isinstance(other, int) and other == 0: return self
        if not isinstance(other, Ratio): return NotImplemented
        return Ratio(self.hits + other.hits, self.total + other.total)
    __radd__ = __add__
    def __eq__(self, o): return isinstance(o, Ratio) and self.hits * o.total == o.hits * self.total
    def __lt__(self, o): return self.hits * o.total < o.hits * self.total
    def __hash__(self): return hash((self.hits, self.total))
    def __bool__(self): return self.total > 0
    def __float__(self): return self.hits / self.total
    def __format__(self, spec):
        if spec == 'frac': return str(Fraction(self.hits, self.total)) if self else 'nan'
        if spec == 'dec':
            with localcontext() as ctx:
                ctx.prec = 4
                ctx.rounding = ROUND_HALF_UP
                return str(Decimal(self.hits) / Decimal(self.total))
        return format(float(self), spec)

def accuracy(logits, y):
    p = logits.argmax(-1)
    return Ratio(int((p == y).sum()), y.numel())

def program(batches, spec):
    parts = [accuracy(l, y) for l, y in batches]
    first = parts[0] if parts else None
    alias = first
    if alias is not None:
        alias += Ratio(1, 1)
    total = sum(parts)
    print('parts', len(parts))
    try:
        txt = f'{total:{spec}}'
    except (ZeroDivisionError, ValueError, TypeError, ArithmeticError) as e:
        txt = type(e).__name__
    try:
        total + 1.5
    except TypeError as e:
        msg = str(e)
    t = torch.tensor([float(p) for p in parts if p])
    try:
        first.extra = 1
    except AttributeError as e:
        msg += str(e)
    return txt, max(parts, default=None) if len(parts) < 2 else format(max(parts), '.2f'), alias is first, t.mean(), msg, [a >= b for a, b in zip(parts, parts[1:])], len({*parts})

CALLS = ["([(torch.eye(3), torch.arange(3)), (torch.eye(3), torch.zeros(3, dtype=torch.long))], 'frac')", "([(torch.eye(2), torch.tensor([1, 0]))], 'dec')",
 "([], 'frac')", "([(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long))], '.1f')", "([(torch.eye(3), torch.arange(3)[None].squeeze())], '%')"]
