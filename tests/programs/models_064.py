import torch
class State:
    table = {}
    def __init_subclass__(cls, start=False): State.table[cls.__name__] = cls; cls.start = start
    def enter(self, m): return None
class Idle(State, start=True):
    def next(self, m, x): return 'Warm' if x.sum() > 0 else None
class Warm(State):
    def enter(self, m): m.heat = m.heat * 2
    def next(self, m, x): 
        m.heat = m.heat + x
        return 'Hot' if m.heat.max() > 10 else ('Idle' if (x < 0).all() else None)
class Hot(State):
    def enter(self, m): m.alarms.append(m.heat.argmax().item()); raise Alarm(m)
    def next(self, m, x): return 'Idle'
class Alarm(Exception):
    def __init__(self, m): self.n = len(m.alarms); super().__init__('alarm', self.n)
    def __str__(self): return f'alarm #{self.n}'
class Machine:
    def __init__(self, n): self.heat, self.alarms, self.hist = torch.ones(n), [], []; self.state = next(c() for c in State.table.values() if c.start)
    @property
    def state(self): return self._s
    @state.setter
    def state(self, s): self.hist.append(type(s).__name__); self._s = s; s.enter(self)
    def feed(self, xs):
        for x in xs:
            nxt = self._s.next(self, x)
            if nxt is None: continue
            try: self.state = State.table[nxt]()
            except Alarm as a:
                print(a)
                if a.n > 1: raise
                self.heat = self.heat * 0
def program(n, xs):
    m = Machine(n)
    try: m.feed(xs)
    except Alarm as a: end = a.args, str(a), a.__traceback__ is not None
    except RuntimeError as e: end = 'runtime'
    else: end = 'quiet'
    return end, m.heat, m.alarms, m.hist, type(m.state).__mro__[1].__name__, sorted(State.table)
CALLS = ["(2, [torch.ones(2), torch.ones(2)*9, torch.ones(2), torch.ones(2)])", "(1, [torch.tensor([1.]), torch.tensor([99.]), torch.tensor([1.]), torch.tensor([1.]), torch.tensor([50.])])", "(3, [])", "(2, [torch.ones(2), -torch.ones(2), torch.ones(3)])", "(2, [torch.ones(2), torch.ones(3)])"]
