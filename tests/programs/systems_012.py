import torch, heapq, itertools

class Event:
    __slots__ = 'time', 'prio', 'fn', 'args', 'cancelled'
    def __init__(self, time, fn, *args, prio=0):
        self.time, self.fn, self.args, self.prio, self.cancelled = time, fn, args, prio, False
    def __lt__(self, o): return (self.time, self.prio) < (o.time, o.prio)

class Sim:
    def __init__(self): self.now, self.q, self.seq, self.trace = 0.0, [], itertools.count(), []
    def at(self, delay, fn, *args, **kw):
        ev = Event(self.now + delay, fn, *args, **kw)
        heapq.heappush(self.q, (ev.time, ev.prio, next(self.seq), ev))
        return ev
    def run(self, until=float('inf')):
        while self.q and self.q[0][0] <= until:
            *_, ev = heapq.heappop(self.q)
            if ev.cancelled: continue
            self.now = ev.time
            ev.fn(*ev.args)
        return self

class Bank:
    def __init__(self, sim, tellers, service):
        self.sim, self.free, self.queue, self.service = sim, tellers, [], service
        self.waits = torch.zeros(len(service)); self.left = []
    def arrive(self, i, patience):
        if self.free:
            self.start(i, self.sim.now)
        else:
            ev = self.sim.at(patience, self.renege, i, prio=1)
            self.queue.append((i, self.sim.now, ev))
    def start(self, i, t0):
        self.free -= 1
        self.waits[i] = self.sim.now - t0
        self.sim.at(self.service[i].item(), self.leave, i)
    def leave(self, i):
        self.free += 1
        self.sim.trace.append(f't={self.sim.now:6.2f} customer {i} leaves, queue {len(self.queue)}')
        if self.queue:
            j, t0, ev = self.queue.pop(0); ev.cancelled = True
            self.start(j, t0)
    def renege(self, i):
        self.queue[:] = [c for c in self.queue if c[0] != i]
        self.waits[i] = -1; self.left.append(i)
        print(f'{i} gives up at {self.sim.now:.2f}')

def program(arrivals, service, tellers, patience):
    sim = Sim(); bank = Bank(sim, tellers, service)
    for i, a in enumerate(arrivals.cumsum(0)):
        sim.at(float(a), bank.arrive, i, patience)
    sim.run(until=50)
    served = bank.waits[bank.waits >= 0]
    return bank.waits, served.mean() if served.numel() else None, sim.trace, bank.left, sim.now, len(sim.q), Event(1, None) < Event(1, None, prio=2)

CALLS = ["(torch.tensor([1.,1.,1.,1.]), torch.tensor([3.,3.,3.,3.]), 1, 2.5)", "(torch.zeros(3), torch.ones(3), 2, 9)", "(torch.zeros(0), torch.zeros(0), 1, 1)", "(torch.ones(5), torch.linspace(1,20,5), 1, 100)", "(torch.ones(3), torch.ones(2), 1, 5)"]
