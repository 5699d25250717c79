import torch
from collections import deque, defaultdict
from contextlib import contextmanager
class Meter:
    __slots__ = ('name', 'total', 'n', 'window', '__weakref__')
    def __init__(self, name, maxlen=3):
        self.name, self.total, self.n = name, 0., 0
        self.window = deque(maxlen=maxlen)
    def update(self, v, k=1):
        v = v.detach() if torch.is_tensor(v) else v
        self.total = self.total + v * k
        self.n += k
        self.window.append(v)
        return self
    @property
    def avg(self):
        if not self.n: raise ZeroDivisionError(self.name)
        return self.total / self.n
    @property
    def smooth(self):
        return sum(self.window) / len(self.window)
    def __str__(self):
        return f'{self.name}={float(self.avg):.3f}({float(self.smooth):.3f})'

class Tracker(defaultdict):
    def __missing__(self, key):
        self[key] = m = Meter(key)
        return m
    @contextmanager
    def phase(self, name):
        before = {k: m.n for k, m in self.items()}
        try:
            yield self
        finally:
            self.delta = {k: m.n - before.get(k, 0) for k, m in self.items()}
            print('phase', name, sorted(self.delta.items()))

def program(xs, ys, thr):
    tr = Tracker()
    with tr.phase('train') as t:
        for x, y in zip(xs, ys):
            loss = (x - y).pow(2).mean()
            t['loss'].update(loss, len(x))
            if loss > thr:
                t['big'].update(1)
    try:
        tr['none'].avg
    except ZeroDivisionError as e:
        err = repr(e)
    out = {k: str(m) for k, m in tr.items() if m.n}
    avg = tr['loss'].avg if tr['loss'].n else None
    try:
        tr['loss'].extra = 1
        slot = 'set'
    except AttributeError as e:
        slot = 'no'
    return out, avg, err, slot, list(tr), tr.delta, list(tr['loss'].window), t is tr
CALLS = ["(torch.arange(12.).reshape(4,3), torch.ones(4,3), 5.)", "(torch.zeros(0,3), torch.zeros(0,3), 1.)", "(torch.ones(2,2), torch.ones(2,2), -1)", "([torch.ones(2), torch.ones(3)], [torch.zeros(2), torch.zeros(3)], torch.tensor(.5))"]
