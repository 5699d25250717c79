import torch
from contextlib import contextmanager, nullcontext, closing

class Sim:
    def __init__(self, n): self.state = torch.zeros(n); self.closed = False; self.time = 0
    def close(self): self.closed = True
    def processes(self):
        def growth():
            while True:
                self.state += torch.arange(len(self.state))
                got = yield 1
                if got: self.state *= got
        def shock():
            try:
                for k in (2, 3):
                    yield k
                    self.state.neg_()
            finally:
                self.state[:1] = 99
        return {'growth': growth(), 'shock': shock()}
    def run(self, until):
        procs = self.processes()
        due = {n: next(p) for n, p in procs.items()}
        while due:
            name = min(due, key=lambda n: (due[n], n))
            self.time = due[name]
            if self.time > until: break
            try:
                due[name] = self.time + procs[name].send(0.5 if self.state.sum() > 6 else None)
            except StopIteration:
                del due[name]
                print(name, 'ended at', self.time)
            yield self.time, name, self.state.clone()
        for p in procs.values(): p.close()

def program(n, until, quiet=False):
    sim = Sim(n)
    with (nullcontext(sim) if quiet else closing(sim)) as s:
        trace = [(t, name, st.tolist()) for t, name, st in s.run(until)]
    return trace, sim.state, sim.closed, sim.time

CALLS = ["(3, 4)", "(3, 4)", "(2, 7, True)", "(1, 0)", "(0, 3)"]
