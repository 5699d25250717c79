import torch
from weakref import WeakSet

class Observable:
    def __init__(self, value):
        self._value, self._subs = value, []
    def __set_name__(self, owner, name): self.name = name
    @property
    def value(self): return self._value
    @value.setter
    def value(self, v):
        old, self._value = self._value, v
        if not torch.equal(torch.as_tensor(old), torch.as_tensor(v)):
            for s in tuple(self._subs): s(old, v)
    def subscribe(self, fn):
        self._subs.append(fn)
        return lambda: self._subs.remove(fn)
    def map(self, f):
        out = Observable(f(self.value))
        self.subscribe(lambda _, v: setattr(out, 'value', f(v)))
        return out
    def __add__(self, o):
        out = Observable(self.value + o.value)
        for s in (self, o):
            s.subscribe(lambda *_: setattr(out, 'value', self.value + o.value))
        return out

def program(a, updates):
    x = Observable(a)
    y = x.map(torch.relu)
    z = x + y
    log = []
    stop = z.subscribe(lambda old, new: log.append((old.sum().item(), new.sum().item())))
    for i, u in enumerate(updates):
        x.value = u
        if z.value.max() > 5:
            stop()
            print('stopped at', i)
            break
    else:
        x.value = x.value.clone()
    try:
        stop()
        again = 'ok'
    except ValueError as e:
        again = str(e)
    return z.value, y.value, log, again, len(x._subs)

CALLS = ["(torch.zeros(2), [torch.ones(2), -torch.ones(2), torch.ones(2)*4, torch.zeros(2)])", "(torch.zeros(2), [torch.ones(2), torch.ones(2)])", "(torch.tensor(1.), [torch.tensor(float('nan'))]*2)", "(torch.zeros(0), [torch.zeros(0)])", "(torch.zeros(1), [])"]
