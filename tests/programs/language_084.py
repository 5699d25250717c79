import torch
from contextlib import contextmanager
from collections import deque
import operator

class Window:
    """running statistics over a deque, with reflected comparison operators and chained comparisons"""
    def __init__(self, n): self.q, self.evals = deque(maxlen=n), 0
    def __lshift__(self, v):
        if len(self.q) == self.q.maxlen and self.q: self.q[0] = self.q[0] * 0
        self.q.append(v); return self
    def __rrshift__(self, v): return self << v
    def _cmp(op):
        def f(self, o):
            self.evals += 1
            return op(self.mean, o.mean if isinstance(o, Window) else o)
        f.__name__ = f'__{op.__name__}__'
        return f
    __lt__, __gt__, __le__, __ge__ = map(_cmp, (operator.lt, operator.gt, operator.le, operator.ge))
    del _cmp
    @property
    def mean(self): return sum(self.q) / len(self.q) if self.q else torch.zeros(())
    @mean.setter
    def mean(self, v):
        for i in range(len(self.q)): self.q[i] = self.q[i] * 0 + v
    @mean.deleter
    def mean(self): self.q.clear()
    def __bool__(self): raise TypeError('use len')

@contextmanager
def rotated(w, k):
    w.q.rotate(k)
    try: yield w.q[0]
    except IndexError: yield None
    finally: w.q.rotate(-k)

def program(xs, n):
    w, v = Window(n), Window(2)
    for x in xs:
        x >> w << x * 2
        v << x
    res = []
    for f in (lambda: 0 < w < 3, lambda: 1 >= w, lambda: w < v <= 2.0, lambda: w or 1, lambda: not w, lambda: [w] == [w], lambda: max(w, v) is w, lambda: w == v, lambda: all([w < 9, v > 0])):
        try: res.append(f())
        except (TypeError, RuntimeError) as e: res.append(str(e)[:30])
    try:
        with rotated(w, 1) as first:
            print('first', first if first is None else first.tolist())
    except RuntimeError as e:
        res.append(str(e))
    if len(v.q): v.mean += 1
    m = v.mean
    del w.mean
    return res, m, len(w.q), w.evals, [*v.q], w.q.maxlen, Window.__lt__.__name__, v.q.index(v.q[0]) if v.q else None, deque([1, 2], 1) == deque([2]), w.mean

CALLS = ["([torch.tensor(1.), torch.tensor(4.), torch.tensor(2.)], 3)", "([torch.tensor(0.5)], 5)", "([], 2)", "([torch.ones(1)] * 2, 0)", "([torch.tensor(3)], 1)"]
