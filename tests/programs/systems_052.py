import torch
from collections import deque

class Smoother:
    registry = {}
    def __init_subclass__(cls, *, key): Smoother.registry[key] = cls
    def __class_getitem__(cls, key):
        try: return cls.registry[key]
        except KeyError: raise LookupError(f'unknown smoother {key!r}; have {", ".join(sorted(cls.registry))}') from None
    def __call__(self, xs): return torch.stack([self.step(x) for x in xs]) if len(xs) else xs
class SMA(Smoother, key='sma'):
    def __init__(self, n=2): self.win = deque(maxlen=n)
    def step(self, x): self.win.append(x); return sum(self.win) / len(self.win)
class EMA(Smoother, key='ema'):
    s = None
    def __init__(self, alpha=.5): self.alpha = alpha
    def step(self, x):
        self.s = x if self.s is None else self.alpha * x + (1 - self.alpha) * self.s
        return self.s
class Holt(EMA, key='holt'):
    trend = 0
    def __init__(self, alpha=.5, beta=.25): super().__init__(alpha); self.beta = beta
    def step(self, x):
        prev = self.s
        if prev is None: return super().step(x)
        lvl = self.alpha * x + (1 - self.alpha) * (prev + self.trend)
        self.trend = self.beta * (lvl - prev) + (1 - self.beta) * self.trend
        self.s = lvl
        return lvl
    def forecast(self, h): return torch.stack([self.s + k * self.trend for k in range(1, h + 1)])
class Median(Smoother, key='med'):
    def __init__(self, n=3): self.n = n; self.hist = []
    def step(self, x):
        self.hist = (self.hist + [x])[-self.n:]
        return sorted(self.hist)[len(self.hist) // 2]

def program(xs, specs):
    out = {}
    for spec in specs:
        key, *args = spec.split('/')
        try:
            s = Smoother[key](*map(float if key != 'sma' else int, args))
            y = s(xs)
            out[spec] = y, (y - xs).abs().mean() if len(xs) else 0
            if hasattr(s, 'forecast'): out[spec] += (s.forecast(2),)
        except LookupError as e: print(e); out[spec] = e.args[0]
        except (TypeError, ValueError, RuntimeError) as e: out[spec] = f'{type(e).__name__}: {e}'
    peak = [i for i in range(1, len(xs) - 1) if xs[i - 1] < xs[i] > xs[i + 1]]
    return out, peak, EMA.s, Holt.trend, list(Smoother.registry)

CALLS = ["(torch.tensor([1.,5,2,8,3]), ['sma/3','ema','holt/.5/.1','med','zzz'])", "(torch.zeros(0), ['ema','holt','sma/0'])", "(torch.ones(3), ['sma/0','ema/x','med/1','holt/1/1/1'])", "(torch.tensor([3,1,2]), ['ema/1','med','sma'])"]
