import torch, enum

class State(enum.Enum):
    IDLE = enum.auto()
    RUN = enum.auto()
    FAIL = 'fail'
    DONE = 'done'
    @property
    def terminal(self): return self in {State.FAIL, State.DONE}
    def __str__(self): return f'<{self.name.title()}>'

class Machine:
    TABLE = {(State.IDLE, 'start'): State.RUN, (State.RUN, 'tick'): State.RUN,
             (State.RUN, 'stop'): State.DONE, (State.FAIL, 'reset'): State.IDLE}
    def __init__(self, x):
        self.state, self.x, self.history = State.IDLE, x, []
    def enter_RUN(self, prev): self.x = self.x * 2 + (1 if prev is State.IDLE else 0)
    def exit_RUN(self, nxt):
        if nxt is not State.RUN: self.x = self.x.round()
    def fire(self, ev):
        key = self.state, ev
        match key:
            case (State.RUN, 'tick') if self.x.abs().max() > 20:
                nxt = State.FAIL
            case (s, _) if key in self.TABLE:
                nxt = self.TABLE[key]
            case (s, 'reset' | 'stop'):
                self.history.append(f'{s!s:>8}|ignored {ev}')
                return False
            case _:
                raise LookupError(f'{self.state} has no {ev!r}')
        getattr(self, 'exit_' + self.state.name, lambda n: None)(nxt)
        prev, self.state = self.state, nxt
        if (h := getattr(self, f'enter_{nxt.name}', None)) is not None: h(prev)
        self.history.append(f'{prev}->{nxt}')
        return True

def program(x, events):
    m, fired = Machine(x), []
    for i, e in enumerate(events):
        try:
            fired.append(m.fire(e))
        except LookupError as err:
            print(err); fired.append(err.args)
        if m.state.terminal and e != 'reset':
            fired.append(m.state.value)
    return m.x, m.history, fired, m.state, m.state is State['DONE'], [s.value for s in State], format(m.state), f'{m.state!r}'

CALLS = ["(torch.tensor([1.3, -2.]), ['start','tick','stop','stop'])", "(torch.ones(2), ['tick'])", "(torch.ones(2)*5, ['start','tick','tick','tick','reset','start'])",
 "(torch.zeros(1), [])", "(torch.arange(3), ['start','reset','bang','stop','reset'])"]
