import torch
import heapq
from itertools import count
from dataclasses import dataclass, field

@dataclass(order=True)
class Event:
    time: float
    seq: int = field(default_factory=count().__next__)
    fn: object = field(compare=False, default=None)
    args: tuple = field(compare=False, default=())

class Simulator:
    def __init__(self):
        self.q, self.now, self.done, self.seq = [], 0.0, [], count()
    def at(self, delay, fn, *args):
        e = Event(self.now + delay, next(self.seq), fn, args)
        heapq.heappush(self.q, e)
        return e
    def cancel(self, e): e.fn = None
    def process(self, gen):
        def step(value=None):
            try:
                delay = gen.send(value)
            except StopIteration as s:
                self.done.append((self.now, gen.__name__, s.value))
            else:
                self.at(delay, step, self.now)
        self.at(0, step)
    def run(self, until):
        while self.q and self.q[0].time <= until:
            e = heapq.heappop(self.q)
            self.now = e.time
            if e.fn is not None: e.fn(*e.args)
        return len(self.q)

def producer(sim, queue, x):
    for i, row in enumerate(x):
        queue.append(row * sim.now)
        t = yield 1 + i % 2
    return i if len(x) else None

def consumer(queue, out):
    idle = 0
    while idle < 3:
        if queue:
            out.append(queue.pop(0).cumsum(0))
            idle = 0
            yield 0.5
        else:
            idle += 1
            print('idle', idle)
            now = yield 1.5
    return now, idle

def program(x, until):
    sim, queue, out = Simulator(), [], []
    sim.process(producer(sim, queue, x))
    sim.process(consumer(queue, out))
    tick = []
    ev = sim.at(2, tick.append, 'tick')
    sim.at(1, sim.cancel, ev) if until > 5 else None
    left = sim.run(until)
    try:
        left2 = Event(1, 2) < Event(1, 3), Event(1, 2) < 3
    except TypeError as e:
        left2 = str(e)
    return out, [q.sum() for q in queue], sim.done, sim.now, left, tick, left2, Event(1, 2) == Event(1, 2, len)

CALLS = ["(torch.arange(6.).reshape(3, 2), 4)", "(torch.ones(2, 1), 10)", "(torch.zeros(0, 1), 10)", "(torch.ones(4, 2), 0)", "(torch.ones(5, 2), 6.5)"]
