import torch
from collections import defaultdict
import weakref

class Bus:
    def __init__(self):
        self._subs = defaultdict(list)
        self.trace = []
    def on(self, topic, fn=None, *, once=False, prio=0):
        if fn is None:
            return lambda f: self.on(topic, f, once=once, prio=prio)
        self._subs[topic].append([prio, once, fn])
        self._subs[topic].sort(key=lambda e: -e[0])
        return fn
    def emit(self, topic, *args, **kw):
        res = []
        for entry in self._subs[topic][:]:
            prio, once, fn = entry
            if once:
                self._subs[topic].remove(entry)
            try:
                r = fn(*args, **kw)
            except StopIteration as stop:
                self.trace.append(f'{topic} stopped: {stop.value}')
                break
            except Exception as e:
                self.trace.append(f'{topic} -> {type(e).__name__}({e})')
                continue
            if r is not None: res.append(r)
        return res

class Meter:
    total = 0
    def __init__(self): self.seen = []
    def __call__(self, t):
        self.seen.append(t.mean())
        Meter.total += t.numel()
    def boom(self, t):
        if t.sum() > 10: raise ValueError(f'too big by {t.sum().item() - 10:.1f}')
        return t + 1

def program(tensors, stop_at=None):
    bus, m = Bus(), Meter()
    bus.on('t', m, prio=5)
    bus.on('t', m.boom)
    @bus.on('t', once=True)
    def first(t):
        print('first!', tuple(t.shape))
        return -t
    n = 0
    @bus.on('t', prio=1)
    def counter(t):
        nonlocal n
        n += 1
        if n == stop_at: raise StopIteration(n)
    outs = [bus.emit('t', t) for t in tensors]
    bus.emit('nothing', 1, a=2)
    bus.emit('t')
    return outs, m.seen, Meter.total, n, bus.trace, {k: len(v) for k, v in bus._subs.items()}, [e[2] is m for e in bus._subs['t']]

CALLS = ["([torch.ones(3), torch.arange(6.)],)", "([], 1)", "([torch.ones(2)*9, torch.zeros(2)], 2)", "((torch.ones(1,1), torch.zeros(0), torch.ones(3)), 1)"]
