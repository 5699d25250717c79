import torch
from collections import defaultdict
from weakref import WeakMethod
class Bus:
    def __init__(self): self.subs, self.log, self.depth = defaultdict(list), [], 0
    def on(self, ev, fn=None, *, once=False, prio=0):
        if fn is None: return lambda f: self.on(ev, f, once=once, prio=prio)
        self.subs[ev].append((-prio, len(self.log), fn, once)); self.subs[ev].sort(key=lambda s: s[:2])
        self.log.append(f'+{ev}')
        return fn
    def emit(self, ev, *args, **kw):
        self.depth += 1
        if self.depth > 3: self.depth -= 1; raise RecursionError(ev)
        res = []
        try:
            for s in self.subs[ev][:]:
                if s[3]: self.subs[ev].remove(s)
                if (r := s[2](*args, **kw)) is False: break
                res.append(r)
        finally: self.depth -= 1
        return res
class Model:
    def __init__(self, bus, w):
        self.w, self.bus, self.n = w, bus, 0
        bus.on('grad', self.clip, prio=5); bus.on('grad', self.apply)
    def clip(self, g): 
        n = g.norm()
        if n > 1: g /= n
        return float(n)
    def apply(self, g): self.w = self.w - .1 * g; self.n += 1; return self.n
def program(w, gs, limit):
    bus = Bus(); m = Model(bus, w)
    @bus.on('grad', once=True)
    def first(g): bus.log.append('first'); return g.sum()
    @bus.on('loop')
    def again(k): return bus.emit('loop', k + 1) + [k]
    res = [bus.emit('grad', g) for g in gs]
    bus.on('grad', lambda g: False if limit is None else g.sum() < limit, prio=9)
    tail = bus.emit('grad', torch.ones_like(w))
    try: bus.emit('loop', 0)
    except RecursionError as e: print('deep', e, bus.depth)
    return res, tail, m.w, m.n, bus.log, bus.emit('none'), sorted(bus.subs), first.__name__, m.clip == m.clip, m.clip is m.clip
CALLS = ["(torch.ones(2), [torch.ones(2)*3, torch.ones(2)*.1], 5)", "(torch.zeros(3), [], None)", "(torch.zeros(3), [torch.zeros(3)], -100.)", "(torch.ones(1), [torch.ones(1)]*3, torch.tensor(0.))"]
