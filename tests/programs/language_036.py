import torch
import types

class Plugin:
    hooks = {}
    def __init_subclass__(cls, *, event, priority=0):
        cls.event, cls.priority = event, priority
        lst = Plugin.hooks.setdefault(event, [])
        lst.append(cls)
        lst.sort(key=lambda c: -c.priority)

class Engine:
    def __init__(self, x):
        self.x, self.log = x, []
    def fire(self, event, **kw):
        for c in Plugin.hooks.get(event, ()):
            r = c()(self, **kw)
            self.log.append((event, c.__name__))
            if r is StopIteration: break
        return self

class Scale(Plugin, event='step', priority=1):
    def __call__(self, eng, by=2): eng.x = eng.x * by
class Shift(Plugin, event='step'):
    n = 0
    def __call__(self, eng, by=2):
        Shift.n += 1
        eng.x = eng.x + Shift.n
        if eng.x.max() > 20: return StopIteration
class Log(Plugin, event='step', priority=-1):
    def __call__(self, eng, **kw): eng.log.append(kw)

def program(x, steps, name):
    Shift.n = 0
    saved = {k: v[:] for k, v in Plugin.hooks.items()}
    def body(ns):
        ns['__call__'] = lambda self, eng, **kw: setattr(eng, 'x', eng.x.neg())
        ns['made'] = name
    try:
        Dyn = types.new_class(name, (Plugin,), {'event': 'step' if name else 'end', 'priority': 5}, body)
        eng = Engine(x)
        bound = types.MethodType(lambda self, k: self.fire('step', by=k), eng)
        eng.go = bound
        for k in range(steps):
            eng.go(k + 1).fire('end')
            print(k, eng.x.tolist())
    finally:
        Plugin.hooks.clear()
        Plugin.hooks.update(saved)
    return eng.x, eng.log, Dyn.made, Dyn.__name__, Shift.n, [c.__name__ for c in Plugin.hooks['step']], eng.go is bound, Dyn.__mro__[1] is Plugin, eng.go.__self__ is eng

CALLS = ["(torch.arange(3.), 2, 'Neg')", "(torch.ones(2), 3, 'Z')", "(torch.ones(1), 2, '')", "(torch.ones(2), 0, 'Q')", "(torch.tensor([15]), 2, 'A')"]
