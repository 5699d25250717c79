import torch

class Date:
    __slots__ = ('n',)
    CUM = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
    def __init__(self, y, m=1, d=1):
        if not 1 <= m <= 12: raise ValueError(f'month {m}')
        dim = self.days_in(y, m)
        if not 1 <= d <= dim: raise ValueError(f'day {d} not in 1..{dim}')
        p = y - 1
        self.n = p * 365 + p // 4 - p // 100 + p // 400 + self.CUM[m - 1] + (m > 2 and self.leap(y)) + d
    @staticmethod
    def leap(y): return y % 4 == 0 and (y % 100 != 0 or y % 400 == 0)
    @classmethod
    def days_in(cls, y, m): return 28 + cls.leap(y) if m == 2 else 30 + (m in {1, 3, 5, 7, 8, 10, 12})
    @classmethod
    def from_ordinal(cls, n):
        self = object.__new__(cls); self.n = n; return self
    def ymd(self):
        y = self.n // 365 + 1
        while Date(y).n > self.n: y -= 1
        m = 12
        while Date(y, m).n > self.n: m -= 1
        return y, m, self.n - Date(y, m).n + 1
    def __add__(self, k): return self.from_ordinal(self.n + int(k))
    def __sub__(self, o): return self.n - o.n if isinstance(o, Date) else self + -o
    def __eq__(self, o): return type(self) is type(o) and self.n == o.n
    def __lt__(self, o): return self.n < o.n
    def __hash__(self): return self.n
    def __format__(self, spec):
        y, m, d = self.ymd()
        spec = spec or '%Y-%m-%d'
        for k, v in {'%Y': f'{y:04}', '%m': f'{m:02}', '%d': f'{d:02}', '%a': 'MonTueWedThuFriSatSun'[(self.n - 1) % 7 * 3:][:3]}.items():
            spec = spec.replace(k, v)
        return spec
    __str__ = lambda self: format(self)

def program(start, offsets, vals):
    try: d0 = Date(*start)
    except (ValueError, TypeError) as e:
        print('cannot', e); d0 = Date(2000, 2, 28)
    days = [d0 + o for o in offsets]
    by = {}
    for d, v in zip(days, vals): by.setdefault(f'{d:%a}', []).append(v)
    means = {k: torch.stack(v).mean() for k, v in by.items()}
    span = max(days) - min(days) if days else 0
    w = torch.tensor([d - d0 for d in days], dtype=torch.float32)
    try: d0 + 'x'
    except ValueError as e: err = str(e)
    try: d0.foo = 1
    except AttributeError as e: err += '|' + str(e)
    return list(map(str, days)), means, span, w * 2, [f'{d:%d/%m/%Y (%a)}' for d in sorted(days)], err, d0 in days, len(set(days))

CALLS = ["((2024,2,28), torch.tensor([0,1,2,366]), torch.arange(4.))", "((2023,2,29), [1], torch.ones(1))", "((1999,12,31), torch.tensor([1.7, -1.2]), torch.ones(2,2))", "((2000,), [], torch.ones(0))", "((1,13), torch.arange(8), torch.arange(8.))"]
