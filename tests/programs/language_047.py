import torch
from contextlib import contextmanager, ContextDecorator, AbstractContextManager
from collections import Counter

class Timer(ContextDecorator):
    ticks = 0
    def __init__(self, name): self.name, self.n = name, 0
    def __enter__(self):
        Timer.ticks += 1
        self.start = Timer.ticks
        return self
    def __exit__(self, *exc):
        self.n += 1
        REPORT[self.name] += Timer.ticks - self.start + 1
        if exc[0] is not None:
            REPORT['exc:' + exc[0].__name__] += 1

REPORT = Counter()

@contextmanager
def option(**kw):
    old = {k: CONFIG.get(k) for k in kw}
    CONFIG.update(kw)
    try:
        yield CONFIG
    finally:
        CONFIG.update(old)

CONFIG = {'scale': 1}

@Timer('layer')
def layer(x): return torch.tanh(x) * CONFIG['scale']

@option(scale=10)
def big(x): return layer(x)

class Guard(AbstractContextManager):
    def __exit__(self, et, ev, tb):
        if et is RuntimeError:
            raise ValueError('translated') from ev

def program(x, n):
    REPORT.clear()
    Timer.ticks = 0
    outs = []
    with Timer('all') as t, option(scale=2) as c:
        for _ in range(n):
            x = layer(x)
            outs.append(big(x).sum())
        c['extra'] = n
    try:
        with Guard() as g, Timer('inner'):
            x @ torch.ones(7, 7)
    except ValueError as e:
        print('caught', e, type(e.__cause__).__name__)
        ctx = e.__context__ is e.__cause__
    else:
        ctx = g
    try:
        layer('x')
    except TypeError:
        pass
    return x, outs, dict(REPORT), CONFIG.pop('extra'), CONFIG, t.n, layer.__name__, ctx is True, Timer.ticks

CALLS = ["(torch.ones(3), 2)", "(torch.ones(2, 7), 1)", "(torch.ones(2), 0)", "(torch.empty(0), 1)", "(torch.tensor(1), 3)"]
