import torch, heapq
from dataclasses import dataclass, field

@dataclass(order=True)
class Event:
    time: float
    seq: int
    kind: str = field(compare=False)
    who: int = field(compare=False, default=-1)

class Queue:
    def __init__(self, servers, g):
        self.events, self.seq = [], 0
        self.free, self.waiting = servers, []
        self.g = g
        self.waits = {}
    def push(self, t, kind, who):
        self.seq += 1
        heapq.heappush(self.events, Event(t, self.seq, kind, who))
    def exp(self, rate): return torch.empty(()).exponential_(rate, generator=self.g).item()
    def handle(self, e): getattr(self, 'on_' + e.kind)(e)
    def on_arrive(self, e):
        self.waiting.append(e)
        self.start(e.time)
    def on_leave(self, e):
        self.free += 1
        self.start(e.time)
    def start(self, now):
        while self.free and self.waiting:
            e = self.waiting.pop(0)
            self.free -= 1
            self.waits[e.who] = now - e.time
            self.push(now + self.exp(1.0), 'leave', e.who)

def program(n, servers, rate, seed=0):
    q = Queue(servers, torch.Generator().manual_seed(seed))
    t = 0.
    for i in range(n):
        t += q.exp(rate)
        q.push(t, 'arrive', i)
    order = []
    while q.events:
        e = heapq.heappop(q.events)
        q.handle(e)
        order.append((e.kind[0], e.who))
    waits = torch.tensor([q.waits.get(i, float('nan')) for i in range(n)])
    if waits.nanmean() > 0.1: print('slow', len(q.waiting))
    return waits, order, q.free, q.seq, waits.isnan().sum(), e if n else None

CALLS = ["(4, 1, 2.0)", "(4, 1, 2.0)", "(5, 2, 1.0, 3)", "(3, 0, 1.0)", "(0, 1, 1.0)", "(1, 1, -1.0)"]
