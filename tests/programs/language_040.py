import torch
from collections import defaultdict
from functools import wraps

class EventBus:
    def __init__(self):
        self.handlers = defaultdict(list)
        self.depth = 0
    def on(self, *names):
        def deco(fn):
            for n in names: self.handlers[n].append(fn)
            @wraps(fn)
            def off():
                for n in names: self.handlers[n].remove(fn)
                return len(self.handlers[names[0]])
            return off
        return deco
    def emit(self, name, *a):
        self.depth += 1
        try:
            return [h(*a) for h in list(self.handlers[name])]
        finally:
            self.depth -= 1

def make_trainer(x):
    bus = EventBus()
    state = {'loss': []}
    best = None

    @bus.on('step', 'warm')
    def compute(k):
        nonlocal x
        x = x * 0.9 + k
        loss = (x ** 2).sum()
        state['loss'].append(loss.item())
        bus.emit('loss', loss)
        return loss

    @bus.on('loss')
    def keep(loss):
        nonlocal best
        if best is None or loss < best:
            best = loss
            state['best_at'] = len(state['loss'])
        elif bus.depth > 1:
            bus.emit('worse', loss, best)

    @bus.on('worse')
    def complain(a, b):
        print(f'worse {a.item():.2f} > {b.item():.2f}')
        if a > 10 * b: raise StopIteration('diverged')

    return bus, state, (compute, keep, complain), lambda: (x, best)

def program(x, ks, warm):
    bus, state, offs, get = make_trainer(x)
    err = None
    for i, k in enumerate(ks):
        try:
            r = bus.emit('warm' if i < warm else 'step', k)
        except StopIteration as e:
            err = e.value
            break
    else:
        err = 'finished'
    counts = [o() for o in offs]
    try:
        offs[0]()
    except ValueError as e:
        counts.append(str(e))
    return get(), state, err, counts, bus.depth, [o.__name__ for o in offs], get.__code__.co_freevars, get()[0] is x

CALLS = ["(torch.ones(2), [0, 0, 1, -1], 1)", "(torch.zeros(2), [0, 100, 0], 0)", "(torch.ones(1), [], 0)", "(torch.ones(2), [0.5, 0.1, torch.tensor(9.)], 3)", "(torch.empty(0), [1, 1], 0)"]
