import torch, math, statistics as st
from collections import namedtuple

Result = namedtuple('Result', 'diff z p sig', defaults=(False,))

class Sample:
    def __init__(self, xs): self.n, self.mean, self.m2 = 0, 0.0, 0.0; self.extend(xs)
    def extend(self, xs):
        for x in xs: self.push(x)
        return self
    def push(self, x):
        self.n += 1; d = x - self.mean
        self.mean = self.mean + d / self.n
        self.m2 = self.m2 + d * (x - self.mean)
    def __or__(self, o):
        r = Sample(()); r.n = self.n + o.n
        if not r.n: return r
        d = o.mean - self.mean
        r.mean = self.mean + d * o.n / r.n
        r.m2 = self.m2 + o.m2 + d * d * self.n * o.n / r.n
        return r
    @property
    def var(self):
        if self.n < 2: raise st.StatisticsError('variance requires at least two data points')
        return self.m2 / (self.n - 1)

def ztest(a, b, alpha=.05):
    se = (a.var / a.n + b.var / b.n) ** .5
    d = b.mean - a.mean
    if se == 0: return Result(d, math.inf if d else 0.0, 1.0)
    z = float(d / se); p = math.erfc(abs(z) / math.sqrt(2))
    return Result(d, z, p, p < alpha)

def permutation(a, b, n, seed):
    g = torch.Generator().manual_seed(seed)
    both = torch.cat([a, b]); obs = abs(b.mean() - a.mean()); hits = 0
    for _ in range(n):
        p = both[torch.randperm(len(both), generator=g)]
        if (p[len(a):].mean() - p[:len(a)].mean()).abs() >= obs: hits += 1
    return (hits + 1) / (n + 1)

def program(a, b, seed):
    out = {}
    A, B = Sample(a), Sample(b.tolist())
    for k, f in {'z': lambda: ztest(A, B), 'perm': lambda: permutation(a, b, 8, seed), 'var': lambda: (A | B).var, 'st': lambda: st.fmean(b.tolist()), 'q': lambda: st.quantiles(b.tolist(), n=4)}.items():
        try: out[k] = f()
        except st.StatisticsError as e: out[k] = f'{type(e).__name__}: {e}'
        except (ZeroDivisionError, AttributeError, TypeError) as e: out[k] = type(e).__name__; print(k, type(e).__name__)
    ci = f"{out['z'].diff:+.2f} (p={out['z'].p:.1e})" if isinstance(out['z'], Result) else '-'
    lift = (b.mean() - a.mean()) / a.mean()
    return out, ci, lift, A.mean, (A | Sample([])).n, Result._field_defaults, out['z'][-1]

CALLS = ["(torch.tensor([1.,2,3]), torch.tensor([2.,4,6,8]), 0)", "(torch.ones(3), torch.ones(3), 1)", "(torch.ones(1), torch.ones(2), 1)", "(torch.zeros(0), torch.zeros(0), 2)", "(torch.ones(2), torch.ones(2)*3, 2)"]
