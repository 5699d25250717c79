import torch
from fractions import Fraction
from decimal import Decimal, getcontext, localcontext
def cf(x, n):
    out = []
    f = Fraction(x).limit_denominator(1000)
    while n and f.denominator != 1:
        i = f.numerator // f.denominator; out.append(i); f = 1 / (f - i); n -= 1
    return out + [f.numerator // f.denominator]
def rational_fit(x, den):
    fr = [Fraction(v).limit_denominator(den) for v in x.tolist()]
    return fr, torch.tensor([float(f) for f in fr])
def program(x, den, prec):
    try: fr, y = rational_fit(x, den)
    except (ValueError, OverflowError) as e: return type(e).__name__, str(e)
    err = (x - y).abs()
    total = sum(fr, Fraction())
    with localcontext() as ctx:
        ctx.prec = prec
        dec = [Decimal(f.numerator) / f.denominator for f in fr]
        s = sum(dec)
    if err.numel() and err.max() > 1e-3: print('rough', f'{err.max().item():.2e}', total)
    half = x * float(Fraction(1, 2)) if total else x
    try: half + Fraction(1, 3)
    except TypeError as e: t = 'TypeError'
    else: t = 'fine'
    try: q = half * Decimal('1.5')
    except TypeError as e: q = 'TypeError'
    return [str(f) for f in fr], y, err, total, s, getcontext().prec, half, t, q, [cf(v, 4) for v in x.tolist()], Fraction(1, 2) == 0.5, divmod(total, 1)
CALLS = ["(torch.tensor([.3333, .5, 3.14159]), 10, 5)", "(torch.zeros(0), 3, 4)", "(torch.tensor([float('nan')]), 3, 4)", "(torch.tensor([float('inf')]), 3, 4)", "(torch.tensor([2.,-1.25]), 100, 28)"]
