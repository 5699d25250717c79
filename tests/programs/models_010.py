import torch
from enum import Enum, IntFlag, auto
class Event(Enum):
    START = 'start'; STEP = 'step'; END = 'end'
    @property
    def method(self): return 'on_' + self.value
    @classmethod
    def ordered(cls): return [e.name for e in cls]
class Flag(IntFlag):
    NONE = 0; STOP = auto(); SKIP = auto(); LOG = auto()
class Callback:
    priority = 0
    def __init_subclass__(cls, /, priority=0, **kw):
        super().__init_subclass__(**kw)
        cls.priority = priority
        REG.append(cls)
    def __getattr__(self, name):
        if name.startswith('on_'):
            return lambda *a, **k: Flag.NONE
        raise AttributeError(name)
REG = []
class EarlyStop(Callback, priority=2):
    def __init__(self): self.best = None
    def on_step(self, t, loss):
        if self.best is None or loss < self.best:
            self.best = loss
            return Flag.LOG
        return Flag.STOP | Flag.LOG
class Logger(Callback, priority=1):
    def __init__(self): self.lines = []
    def on_step(self, t, loss):
        self.lines.append(f'{t.step}:{loss.item():.2f}'); return Flag.NONE
    def on_end(self, t): print('log', *self.lines, sep='|'); return 0
class Clip(Callback):
    def on_start(self, t): t.limit = 1.0; return Flag.SKIP
class Trainer:
    limit = 9.0
    def __init__(self): self.cbs = [c() for c in sorted(REG, key=lambda c: c.priority, reverse=True)]; self.step = 0
    def fire(self, ev, *a):
        out = Flag.NONE
        for c in self.cbs: out |= getattr(c, ev.method)(self, *a)
        return out
    def fit(self, w, xs):
        flags = [self.fire(Event.START)]
        for self.step, x in enumerate(xs):
            g = (w * x).cos() * x
            w = w - 0.1 * g.clamp(-self.limit, self.limit)
            f = self.fire(Event.STEP, (w * x).sin().sum())
            flags.append(f)
            if f & Flag.STOP: break
        self.fire(Event.END)
        return w, flags
def program(w, xs):
    t = Trainer()
    w2, flags = t.fit(w, xs)
    try: t.cbs[0].nothing
    except AttributeError as e: err = e.args
    return w2, [str(f) for f in flags], [int(f) for f in flags], t.step, err, Event.ordered(), Event('step') is Event.STEP, 'limit' in vars(t)
CALLS = ["(torch.ones(3), torch.arange(9.).reshape(3,3))", "(torch.ones(2)*3, torch.ones(4,2))", "(torch.ones(2), [])", "(torch.tensor(1.), [torch.tensor(2.), torch.tensor(.5), -torch.tensor(1.)])"]
