import torch
from abc import ABC, abstractmethod

class Command(ABC):
    @abstractmethod
    def do(self, doc): ...
    @abstractmethod
    def undo(self, doc): ...

class Fill(Command):
    def __init__(self, where, value): self.where, self.value = where, value
    def do(self, doc):
        self.old = doc[self.where].clone()
        doc[self.where] = self.value
    def undo(self, doc): doc[self.where] = self.old

class Scale(Command):
    def __init__(self, k): self.k = k
    def do(self, doc): doc.mul_(self.k)
    def undo(self, doc): doc.div_(self.k)

class Macro(Command):
    def __init__(self, *cmds): self.cmds = cmds
    def do(self, doc):
        done = []
        try:
            for c in self.cmds:
                c.do(doc)
                done.append(c)
        except Exception:
            for c in reversed(done): c.undo(doc)
            raise
    def undo(self, doc):
        for c in self.cmds[::-1]: c.undo(doc)

class Editor:
    def __init__(self, doc): self.doc, self.undos, self.redos = doc, [], []
    def run(self, cmd):
        cmd.do(self.doc)
        self.undos.append(cmd)
        self.redos.clear()
    def undo(self):
        c = self.undos.pop(); c.undo(self.doc); self.redos.append(c)
    def redo(self):
        c = self.redos.pop(); c.do(self.doc); self.undos.append(c)

def program(doc, script):
    ed, log = Editor(doc), []
    for step in script:
        try:
            match step:
                case 'undo' | 'redo' as name: getattr(ed, name)()
                case Command(): ed.run(step)
                case float(k) | int(k): ed.run(Scale(k))
                case (a, b, *rest): ed.run(Macro(*[Fill(i, b) for i in (a, *rest)]))
        except (IndexError, RuntimeError) as e:
            log.append(type(e).__name__)
        if doc.sum() > 20: print('large', doc.sum().item())
        log.append(doc.tolist())
    return doc, log, len(ed.undos), len(ed.redos), doc._version > 0

CALLS = ["(torch.ones(3), [2., (0, 5), 'undo', 'redo', 'undo', 'undo', 'undo'])", "(torch.ones(3), [(0, 5, 1, 9), 3])", "(torch.ones(2,2), [Scale(4), Macro(Scale(2), Fill(1, 7.)), 'undo'])", "(torch.arange(3), [0.5, 2])", "(torch.ones(2), ['x', ()])"]
