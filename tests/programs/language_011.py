import torch
import warnings
import traceback
from functools import wraps

def retry(times, exceptions=(Exception,), on_fail=None):
    def deco(fn):
        @wraps(fn)
        def inner(*a, **k):
            err = None
            for attempt in range(1, times + 1):
                try:
                    return fn(*a, attempt=attempt, **k)
                except exceptions as e:
                    e.add_note(f'attempt {attempt}')
                    e.__cause__ = err
                    err = e
                    inner.failures += 1
            if on_fail is not None:
                return on_fail(err)
            raise err
        inner.failures = 0
        return inner
    return deco

class Unstable(RuntimeError): pass

def chain(e):
    out = []
    while e is not None:
        out.append((type(e).__name__, str(e), getattr(e, '__notes__', None), e.__suppress_context__))
        e = e.__cause__
    return out

@retry(3, (Unstable, ZeroDivisionError), on_fail=chain)
def normalise(x, eps, attempt):
    s = x.sum()
    if s.abs() < eps * attempt:
        warnings.warn(f'small sum {s.item():.2f}', stacklevel=2)
        raise Unstable(f'sum {s.item():.2f}')
    if attempt == 1 and x.numel() % 2:
        1 / 0
    return x / s

def program(x, eps):
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter('always')
        out = normalise(x, eps)
    try:
        normalise(None, 1)
    except AttributeError as e:
        tb = [f.name for f in traceback.extract_tb(e.__traceback__)]
        msg = ''.join(traceback.format_exception_only(e)).strip()
    f, normalise.failures = normalise.failures, 0
    return out, [(str(x.message), x.category.__name__) for x in w], tb, msg, f, normalise.__name__, normalise.__wrapped__.__qualname__

CALLS = ["(torch.ones(4), 0.1)", "(torch.ones(3), 0.1)", "(torch.zeros(2), 0.1)", "(torch.full((4,), .5), 1.5)", "(torch.empty(0), 0.0)"]
