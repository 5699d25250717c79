import torch
from collections import defaultdict

class Bus:
    def __init__(self): self.subs = defaultdict(list); self.queue = []; self.depth = 0
    def subscribe(self, topic, prio=0):
        def deco(fn):
            self.subs[topic].append((prio, len(self.subs[topic]), fn))
            self.subs[topic].sort(key=lambda s: s[:2])
            return fn
        return deco
    def publish(self, topic, **data):
        self.queue.append((topic, data))
        if self.depth: return
        self.depth += 1
        try:
            while self.queue:
                t, d = self.queue.pop(0)
                for *_, fn in self.subs.get(t, ()):
                    if fn(**d) is False: break
        finally:
            self.depth -= 1

def program(readings, limit):
    bus, log, state = Bus(), [], {'mean': torch.zeros(()), 'n': 0}
    @bus.subscribe('reading', prio=1)
    def track(x):
        state['n'] += 1
        state['mean'] = state['mean'] + (x.mean() - state['mean']) / state['n']
        if state['mean'] > limit: bus.publish('alarm', level=state['mean'].item(), n=state['n'])
    @bus.subscribe('reading')
    def validate(x):
        ok = bool(x.isfinite().all())
        if not ok: log.append('bad'); print('rejected')
        return ok
    @bus.subscribe('alarm')
    def alarm(level, n):
        nonlocal limit
        limit *= 2
        log.append((round(level, 3), n, limit))
    err = None
    for r in readings:
        try: bus.publish('reading', x=r)
        except Exception as e: err = type(e).__name__
    return log, state, limit, bus.depth, bus.queue, list(bus.subs), err

CALLS = ["([torch.ones(2), torch.ones(2)*5], .5)", "([torch.ones(2), torch.ones(2)*5], .5)", "([torch.tensor([float('inf')]), torch.arange(3.)], 0)", "([1], 1)", "([], 1)", "([torch.arange(3)], 1)"]
