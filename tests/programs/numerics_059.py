import torch
from contextlib import contextmanager

class World:
    def __init__(self, n):
        self.x = torch.arange(float(n))
        self.listeners = {}
        self._undo = []
    def on(self, event, fn=None, *, once=False):
        if fn is None:
            return lambda f: self.on(event, f, once=once)
        self.listeners.setdefault(event, []).append((fn, once))
        return fn
    def emit(self, event, *args):
        keep = []
        for fn, once in self.listeners.get(event, []):
            fn(*args)
            if not once: keep.append((fn, once))
        self.listeners[event] = keep
    @contextmanager
    def transaction(self):
        saved = self.x.clone()
        try:
            yield saved
        except ArithmeticError:
            self.x.copy_(saved)
            self.emit('rollback', saved.sum().item())
        else:
            self._undo.append(saved)
            self.emit('commit', len(self._undo))
    def undo(self):
        self.x = self._undo.pop()

def program(n, ops):
    w, log = World(n), []
    w.on('commit', lambda k: log.append(('commit', k)))
    @w.on('rollback', once=True)
    def rolled(total):
        log.append(('rollback', total))
        print('rolled back', total)
    alias = w.x
    for op in ops:
        with w.transaction():
            w.x += op
            if w.x.max() > 10: raise OverflowError('too big')
            w.x[0] = -1
    undone = 0
    while w._undo and w.x.sum() > 0:
        w.undo()
        undone += 1
    return w.x, alias, alias is w.x, log, undone, len(w.listeners['rollback']) if 'rollback' in w.listeners else None

CALLS = ["(3, [1, 20, 2])", "(3, [1, 20, 2])", "(2, [torch.tensor([1.,2.])])", "(2, [100., 200.])", "(0, [1])"]
