import torch
from enum import Enum, IntFlag, unique, auto

class State(Enum):
    def _generate_next_value_(name, start, count, last): return name.lower()
    IDLE = auto()
    RUN = auto()
    FAIL = auto()
    DONE = auto()

    @property
    def final(self): return self in (State.FAIL, State.DONE)

def transition(*src, to):
    def deco(fn):
        def inner(self, *a):
            if self.state not in src:
                raise IllegalMove(self.state, fn.__name__)
            r = fn(self, *a)
            self.trail.append((self.state.value, to.value))
            self.state = to if r is not False else State.FAIL
            return self
        TABLE[fn.__name__] = {s: to for s in src}
        return inner
    return deco

TABLE = {}
class IllegalMove(Exception):
    def __init__(self, state, name):
        super().__init__(f'{name} in {state.name}')
        self.state = state

class Job:
    def __init__(self, x):
        self.x, self.state, self.trail = x, State.IDLE, []
    @transition(State.IDLE, State.FAIL, to=State.RUN)
    def start(self): self.x = self.x + 1
    @transition(State.RUN, to=State.RUN)
    def work(self, f=2):
        self.x = self.x * f
        return not bool(self.x.isnan().any())
    @transition(State.RUN, to=State.DONE)
    def finish(self): self.x = self.x.sum()

def program(x, moves):
    j = Job(x)
    errors = []
    for m in moves:
        name, *args = m.split(':')
        try:
            getattr(j, name)(*map(float, args))
        except IllegalMove as e:
            errors.append((str(e), e.state is j.state))
        except AttributeError as e:
            errors.append(str(e))
        if j.state.final:
            print(j.state, j.trail[-1])
            if j.state is State.DONE: break
    else:
        errors.append('ran out')
    return j.x, j.state, j.trail, errors, TABLE['start'][State.FAIL], State('run') is State.RUN, list(State), State.RUN.__class__.__name__, {s.name: s.final for s in State}

CALLS = ["(torch.ones(2), ['start', 'work', 'work:3', 'finish', 'work'])", "(torch.ones(2), ['work', 'start', 'work:nan', 'start', 'jump'])", "(torch.ones(2), [])", "(torch.empty(0), ['start', 'finish'])", "(torch.tensor([1]), ['start', 'work:x'])"]
