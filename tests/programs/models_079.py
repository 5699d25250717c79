import torch
from contextvars import ContextVar
LEVEL = ContextVar('level', default=0)
class timed:
    stack = []
    def __init__(self, name): self.name = name
    def __enter__(self): self.tok = LEVEL.set(LEVEL.get() + 1); timed.stack.append(self.name); return LEVEL.get()
    def __exit__(self, t, v, tb):
        LEVEL.reset(self.tok); timed.stack.pop()
        if t: v.add_note(f'in {self.name}') if hasattr(v, 'add_note') else None
    def __call__(self, f):
        def wrapped(*a, **k):
            with self: return f(*a, **k)
        wrapped.__name__ = f.__name__ + '_timed'
        return wrapped
@timed('outer')
def outer(x, n):
    with timed('mid') as l:
        if n == 0: raise ValueError('zero')
        return inner(x, n) * l
@timed('inner')
def inner(x, n):
    if x.sum() > 10: raise OverflowError(float(x.sum()))
    return x / n + LEVEL.get() * len(timed.stack)
def program(xs, n):
    res = []
    for x in xs:
        try: res.append(outer(x, n))
        except (ValueError, OverflowError) as e:
            res.append((repr(e), getattr(e, '__notes__', None), LEVEL.get()))
            try: raise RuntimeError('wrapped') from e
            except RuntimeError as r: res.append((r.__cause__ is e, r.__context__ is e, str(r)))
        finally: print(LEVEL.get(), timed.stack)
    try:
        try: xs[0] @ 'a'
        except TypeError: raise KeyError('k')
    except (KeyError, IndexError) as k: ctx = type(k.__context__).__name__
    return res, ctx, outer.__name__, inner.__closure__ is not None
CALLS = ["([torch.ones(2), torch.ones(2)*9], 2)", "([torch.ones(3)], 0)", "([], 1)", "([torch.zeros(0), torch.ones(1)], torch.tensor(2.))"]
