import torch
import sys

class Group(ExceptionGroup):
    def derive(self, excs): return Group(self.message + '*', excs)

class Bad(Exception):
    def __init__(self, i, x): super().__init__(i); self.x = x
    def __eq__(self, o): return isinstance(o, Bad) and self.args == o.args
    __hash__ = Exception.__hash__

def gather(fns, x):
    outs, errs = [], []
    for i, f in enumerate(fns):
        try:
            outs.append(f(x))
        except Exception as e:
            e.add_note(f'task {i}')
            errs.append(e)
    if errs: raise Group('gather', errs)
    return outs

def nested(x, n):
    try:
        if n == 0: raise Bad(n, x)
        nested(x + 1, n - 1)
    except Bad as e:
        if n % 2: raise LookupError(n) from e
        raise Bad(n, e.x * 2)
    except LookupError as e:
        e.args += (n,)
        raise

def describe(e, depth=0):
    if e is None or depth > 8: return None
    kids = tuple(describe(c, depth + 1) for c in getattr(e, 'exceptions', ()))
    return type(e).__name__, str(e)[:40], getattr(e, '__notes__', None), kids, describe(e.__cause__, depth + 1), describe(e.__context__, depth + 1)

FNS = {'ok': lambda x: x + 1, 'div': lambda x: 1 // 0, 'bad': lambda x: (_ for _ in ()).throw(Bad(1, x)), 'key': lambda x: {}[int(x.sum())], 'shape': lambda x: x @ torch.ones(9, 9), 'next': lambda x: next(iter(()))}

def program(x, names, n):
    caught = []
    try:
        outs = gather([FNS[k] for k in names], x)
    except* (ZeroDivisionError, KeyError) as g:
        caught.append(('arith', describe(g)))
        outs = None
    except* Bad as g:
        print('bad group', len(g.exceptions))
        caught.append(('bad', [e.x * 3 for e in g.exceptions], g.message))
    except* Exception as g:
        caught.append(('rest', [type(e).__name__ for e in g.exceptions]))
    else:
        caught.append('clean')
    try:
        nested(x, n)
    except (Bad, LookupError) as e:
        d = describe(e)
        y = getattr(e, 'x', None)
        same = sys.exc_info()[1] is e
    return caught, locals().get('outs', 'unset'), d, y, same, sys.exc_info() == (None,) * 3, x * 2

CALLS = ["(torch.ones(2), ['ok', 'div', 'bad', 'key'], 2)", "(torch.ones(2), ['ok', 'ok'], 3)", "(torch.arange(3.), ['shape', 'next', 'bad'], 0)", "(torch.ones(1), [], 1)", "(torch.ones(1), ['zz'], 1)", "(torch.zeros(1), ['div'], 4)"]
