import torch
from collections import deque
class Editor:
    def __init__(self, t, depth=3): self.t, self.done, self.undone = t, deque(maxlen=depth), []
    def do(self, cmd): cmd.apply(self); self.done.append(cmd); self.undone.clear(); return self
    def undo(self):
        cmd = self.done.pop(); cmd.revert(self); self.undone += [cmd]; return self
    def redo(self):
        cmd = self.undone.pop(); cmd.apply(self); self.done.append(cmd); return self
class Add:
    def __init__(self, k): self.k = k
    def apply(self, ed): ed.t.add_(self.k)
    def revert(self, ed): ed.t.sub_(self.k)
class Put:
    def __init__(self, i, v): self.i, self.v = i, v
    def apply(self, ed): self.old = ed.t[self.i].clone(); ed.t[self.i] = self.v
    def revert(self, ed): ed.t[self.i] = self.old; del self.old
class Swap:
    def apply(self, ed): ed.t = ed.t.flip(0)
    revert = apply
class Macro(list):
    def apply(self, ed):
        k = 0
        try:
            for c in self: c.apply(ed); k += 1
        except Exception:
            for c in self[:k][::-1]: c.revert(ed)
            raise
    def revert(self, ed):
        for c in reversed(self): c.revert(ed)
def program(t, script):
    ed = Editor(t); snaps, errs = [], []
    for op, *a in script:
        try:
            match op:
                case 'add' | 'put' | 'swap': ed.do({'add': Add, 'put': Put, 'swap': Swap}[op](*a))
                case 'macro': ed.do(Macro([Add(1), Put(*a), Swap()]))
                case _: getattr(ed, op)()
        except (IndexError, AttributeError, TypeError) as e: errs.append((op, type(e).__name__)); print(op, 'failed')
        snaps.append(ed.t.sum().item())
    return ed.t, snaps, errs, len(ed.done), len(ed.undone), ed.t is t, [vars(c) if not isinstance(c, list) else len(c) for c in ed.done], t
CALLS = ["(torch.arange(4.), [('add',2),('put',1,9.),('undo',),('redo',),('swap',),('undo',),('undo',),('undo',)])", "(torch.zeros(2), [('macro',5,1.),('macro',0,3.),('undo',),('nope',),('undo',)])", "(torch.zeros(0), [('swap',),('undo',),('redo',),('redo',)])", "(torch.ones(2,2), [('put',(0,1),torch.tensor(3.)),('add',torch.ones(2)),('add',),('add',1),('add',1),('add',1),('undo',),('undo',),('undo',),('undo',)])"]
