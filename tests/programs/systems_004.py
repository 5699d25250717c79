import torch
from abc import ABC, abstractmethod

class Command(ABC):
    registry = []
    def __init_subclass__(cls, /, label=None, **kw):
        super().__init_subclass__(**kw)
        cls.label = label or cls.__name__.lower()
        Command.registry.append(cls)
    @abstractmethod
    def do(self, doc): ...
    @abstractmethod
    def undo(self, doc): ...
    def __repr__(self): return f'<{self.label}>'

class Add(Command, label='plus'):
    def __init__(self, v): self.v = v
    def do(self, doc): doc.t = doc.t + self.v
    def undo(self, doc): doc.t = doc.t - self.v
class Zero(Command):
    def __init__(self, i): self.i = i
    def do(self, doc):
        self.old = doc.t[self.i].clone()
        doc.t = doc.t.clone()
        doc.t[self.i] = 0
    def undo(self, doc):
        doc.t = doc.t.clone(); doc.t[self.i] = self.old
class Macro(Command):
    def __init__(self, *cs): self.cs = cs
    def do(self, doc):
        done = []
        try:
            for c in self.cs:
                c.do(doc); done.append(c)
        except IndexError:
            while done: done.pop().undo(doc)
            raise
    def undo(self, doc):
        for c in reversed(self.cs): c.undo(doc)

class Doc:
    def __init__(self, t): self.t, self.past, self.future = t, [], []
    def run(self, c):
        c.do(self); self.past.append(c); self.future.clear()
        return self
    def undo(self):
        c = self.past.pop(); c.undo(self); self.future.append(c); return self
    def redo(self):
        c = self.future.pop(); c.do(self); self.past.append(c); return self

def program(t, script, k):
    d, log = Doc(t), []
    for ch in script:
        try:
            if ch == 'a': d.run(Add(k))
            elif ch == 'z': d.run(Zero(k))
            elif ch == 'm': d.run(Macro(Add(1), Zero(0), Add(k)))
            elif ch == 'x': d.run(Macro(Add(5), Zero(99)))
            elif ch == 'u': d.undo()
            elif ch == 'r': d.redo()
            else: d.run(Command())
        except IndexError as e: log.append((ch, 'index', str(e)[:30]))
        except TypeError as e: log.append((ch, str(e)))
        log.append((ch, d.t.sum(), list(map(repr, d.past)), len(d.future)))
        if len(log) == 3: print(d.past, d.future)
    return d.t, log, [c.label for c in Command.registry], d.t is t

CALLS = ["(torch.arange(4.), 'aazuurr', 2)", "(torch.ones(3), 'mxu!', 1)", "(torch.zeros(2,2), 'urmmuuu', 0)", "(torch.arange(3), '', 1)", "(torch.arange(3), 'amzxuuuur', 2)"]
