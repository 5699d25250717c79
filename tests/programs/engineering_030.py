import torch
from functools import wraps

def every(n):
    def deco(fn):
        calls = 0
        @wraps(fn)
        def wrapper(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls % n == 0:
                return fn(*args, **kwargs)
        wrapper.calls = lambda: calls
        wrapper.reset = lambda: globals().__setitem__('resets', resets + 1)
        return wrapper
    return deco

resets = 0

class Loop:
    hooks = {'step': [], 'end': []}
    def on(event):
        def reg(fn):
            Loop.hooks[event].append(fn.__name__)
            return fn
        return reg
    @classmethod
    def fire(cls, self, event, **kw):
        return [getattr(self, name)(**kw) for name in cls.hooks[event]]

class MyLoop(Loop):
    def __init__(self, w): self.w, self.events = w, []
    @Loop.on('step')
    def log(self, loss, **kw):
        self.events.append(('log', round(loss.item(), 4)))
        return loss > 1
    @Loop.on('step')
    def decay(self, i, **kw):
        self.w *= 0.9
        return i
    @Loop.on('end')
    def finish(self, **kw):
        self.events.append(('end', sorted(kw)))

def program(w, n, period):
    loop = MyLoop(w.clone())
    tick = every(period)(lambda i, loss: print('tick', i, loss.item() > 0))
    res = []
    for i in range(n):
        loss = (loop.w ** 2).sum()
        res += loop.fire(loop, 'step', i=i, loss=loss)
        tick(i, loss)
    tick.reset()
    Loop.fire(loop, 'end', a=1, b=w)
    return loop.w, res, loop.events, tick.calls(), Loop.hooks

CALLS = ["(torch.ones(3), 3, 2)", "(torch.zeros(2), 2, 1)", "(torch.arange(4.), 4, 3)"]
