import torch
from enum import Enum, Flag, auto

class Perm(Flag):
    R = auto(); W = auto(); X = auto()
    RW = R | W

class State(Enum):
    IDLE = (0, Perm.R)
    RUN = (1, Perm.RW)
    FAIL = (2, Perm(0))
    def __init__(self, num, perm): self.num, self.perm = num, perm
    @classmethod
    def _missing_(cls, value):
        return next((m for m in cls if m.num == value), None)

class Machine:
    table = {}
    def transition(src, event, table=table):
        def deco(fn):
            table[src, event] = fn
            return fn
        return deco
    @transition(State.IDLE, 'start')
    def start(self, x):
        self.data = x.clone()
        return State.RUN
    @transition(State.RUN, 'tick')
    def tick(self, x):
        self.data += x
        return State.FAIL if self.data.max() > 5 else State.RUN
    @transition(State.RUN, 'stop')
    def stop(self, x): return State(0)
    del transition
    def __init__(self): self.state, self.data, self.trace = State.IDLE, None, []
    def send(self, event, x):
        try: fn = self.table[self.state, event]
        except KeyError as k:
            self.trace.append(k.args[0][1]); return self
        old, self.state = self.state, fn(self, x)
        if old is not self.state: print(old.name, '->', self.state.name)
        return self

def program(events, x):
    m = Machine()
    for ev in events: m = m.send(ev, x)
    try: bad = State(m.state.num + 1)
    except ValueError as e: bad = str(e)
    w = Perm.W in m.state.perm
    return m.state, m.data, m.trace, bad, w, x * (2 if w else 3), ~Perm.R, {s: s.perm for s in State}

CALLS = ["(['start','tick','tick','bogus'], torch.ones(2))", "(['start','tick','tick'], torch.tensor([3.]))", "(['tick','start','stop'], torch.zeros(1))", "([], torch.ones(1))"]
