import torch
from contextlib import ExitStack, contextmanager

class Transaction:
    """nested savepoints on a dict of tensors, as in databases"""
    def __init__(self, store): self.store, self.undo = store, []
    def __setitem__(self, k, v):
        old = self.store.get(k, self)
        self.undo.append((lambda: self.store.pop(k)) if old is self else (lambda: self.store.__setitem__(k, old)))
        self.store[k] = v
    def __delitem__(self, k):
        v = self.store.pop(k)
        self.undo.append(lambda: self.store.update({k: v}))
    @contextmanager
    def savepoint(self, swallow=()):
        mark = len(self.undo)
        try:
            yield mark
        except BaseException as e:
            while len(self.undo) > mark: self.undo.pop()()
            if not isinstance(e, swallow): raise
            FAILED.append(e.args[0] if e.args else type(e).__name__)

FAILED = []

def apply(tx, op, x):
    kind, *rest = op.split()
    if kind == 'set': tx[rest[0]] = x * float(rest[1])
    elif kind == 'del': del tx[rest[0]]
    elif kind == 'add':
        a, b, c = rest
        tx[c] = tx.store[a] + tx.store[b]
    elif kind == 'check':
        assert tx.store[rest[0]].sum() > 0, f'{rest[0]} not positive'
    else: raise NotImplementedError

def program(x, groups):
    FAILED.clear()
    tx = Transaction({'base': x})
    with ExitStack() as st:
        st.callback(print, 'end', len(groups))
        for g in groups:
            with tx.savepoint((KeyError, AssertionError)) as m:
                for op in g.split(';'):
                    apply(tx, op, x)
                continue
            print('rolled back to', m)
        try:
            with tx.savepoint(): apply(tx, 'bogus', x)
        except NotImplementedError as e:
            FAILED.append(e.__context__)
        st.pop_all() if len(groups) > 3 else None
    return tx.store, FAILED, len(tx.undo), tx.store['base'] is x if 'base' in tx.store else None

CALLS = ["(torch.ones(2), ['set a 2;add a base c', 'set a -1;check a', 'del c'])", "(torch.ones(2), ['del q', 'del base;add a b c'])", "(torch.zeros(1), ['check base'])", "(torch.ones(1), [])", "(torch.arange(3.), ['set a 1', 'set b 2', 'add a b a;add a b a;check zz', 'del base'])"]
