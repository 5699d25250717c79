import torch
from types import GeneratorType
from collections import deque

class Task:
    ids = iter(range(1000))
    def __init__(self, gen, name):
        self.gen, self.name, self.waiting, self.result, self.stack = gen, name, [], None, []

class Kernel:
    """cooperative scheduler: tasks yield requests"""
    def __init__(self):
        self.ready, self.log, self.tasks = deque(), [], {}
    def spawn(self, gen, name):
        t = self.tasks[name] = Task(gen, name)
        self.ready.append((t, None))
        return t
    def finish(self, t, v):
        t.result = v
        self.log.append(f'{t.name}={type(v).__name__}')
        for w in t.waiting: self.ready.append((w, v))
    def loop(self):
        n = 0
        while self.ready:
            t, v = self.ready.popleft()
            n += 1
            try:
                req = t.gen.throw(v) if isinstance(v, Exception) else t.gen.send(v)
            except StopIteration as s:
                if t.stack:
                    t.gen = t.stack.pop()
                    self.ready.appendleft((t, s.value))
                else: self.finish(t, s.value)
                continue
            except Exception as e:
                if t.stack:
                    t.gen = t.stack.pop()
                    self.ready.append((t, e))
                else: self.finish(t, e)
                continue
            match req:
                case ('join', name) if name in self.tasks:
                    other = self.tasks[name]
                    if other.result is not None: self.ready.append((t, other.result))
                    else: other.waiting.append(t)
                case GeneratorType():
                    t.stack.append(t.gen)
                    t.gen = req
                    self.ready.append((t, None))
                case None: self.ready.append((t, None))
                case _: self.ready.append((t, KeyError(req)))
        return n

def worker(x, k):
    for i in range(k):
        x = x * 2 + i
        yield
    if k > 2: raise OverflowError(k)
    return x

def main(x, k):
    try:
        a = yield worker(x, k)
    except OverflowError as e:
        print('overflow', e)
        a = x
    b = yield 'join', 'side'
    try:
        yield 'bogus', 1
    except KeyError as e:
        bad = e.args
    return a + b, bad

def program(x, k, j):
    K = Kernel()
    m = K.spawn(main(x, k), 'main')
    K.spawn(worker(x - 1, j), 'side')
    n = K.loop()
    r = m.result
    if isinstance(r, Exception): r = repr(r)
    return r, n, K.log, x.sum(), sorted(K.tasks), m.gen.gi_frame is None

CALLS = ["(torch.ones(2), 2, 1)", "(torch.arange(3.), 3, 0)", "(torch.ones(1), 0, 2)", "(torch.ones(1), 1, 3)", "(torch.zeros(0), 3, 1)"]
