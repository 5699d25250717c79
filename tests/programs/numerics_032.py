import torch
import math

class Welford:
    __slots__ = ('n', 'mean', 'm2', '_min', '_max')
    def __init__(self):
        self.n = 0
        self.mean = 0.0
        self.m2 = 0.0
        self._min, self._max = math.inf, -math.inf
    def push(self, x):
        self.n += 1
        delta = x - self.mean
        self.mean += delta / self.n
        self.m2 += delta * (x - self.mean)
        self._min = min(self._min, x)
        self._max = max(self._max, x)
    @property
    def var(self):
        return self.m2 / (self.n - 1) if self.n > 1 else math.nan
    @property
    def std(self):
        return math.sqrt(self.var)
    def merge(self, o):
        n = self.n + o.n
        d = o.mean - self.mean
        self.m2 += o.m2 + d * d * self.n * o.n / max(n, 1)
        self.mean += d * o.n / max(n, 1)
        self.n = n
        return self
    def __repr__(self):
        return f'{self.mean:.3f}±{self.std:.3f} (n={self.n})'

def program(a, b):
    scalars, tensors = Welford(), Welford()
    for v in a.flatten().tolist():
        scalars.push(v)
    for row in b:
        if row.isnan().any():
            continue
        tensors.n += 1
        d = row - tensors.mean
        tensors.mean = tensors.mean + d / tensors.n
        tensors.m2 = tensors.m2 + d * (row - tensors.mean)
    other = Welford()
    other.push(1)
    other.push(-2.5)
    text = repr(scalars)
    scalars.merge(other)
    print(text)
    try:
        z = (a - scalars.mean) / scalars.std
    except ZeroDivisionError:
        z = None
    return z, text, repr(scalars), tensors.mean, tensors.var, (other._min, other._max), scalars.n

CALLS = ["(torch.arange(4.), torch.ones(3,2))", "(torch.arange(4.), torch.ones(3,2))", "(torch.arange(6).reshape(2,3), torch.tensor([[1.,float('nan')],[2.,3.],[4.,9.]]))", "(torch.tensor([]), torch.ones(0,2))"]
