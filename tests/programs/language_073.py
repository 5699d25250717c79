import torch
import functools
import inspect

def trace(fn=None, *, log=None, name=None):
    if fn is None: return functools.partial(trace, log=log, name=name)
    sig = inspect.signature(fn)
    @functools.wraps(fn)
    def wrapper(*a, **k):
        b = sig.bind(*a, **k)
        b.apply_defaults()
        wrapper.calls.append({n: tuple(v.shape) if torch.is_tensor(v) else v for n, v in b.arguments.items()})
        wrapper.depth += 1
        try:
            r = fn(*b.args, **b.kwargs)
        except Exception as e:
            wrapper.errors[type(e)] = wrapper.errors.get(type(e), 0) + 1
            raise
        finally:
            wrapper.depth -= 1
        return r
    wrapper.calls, wrapper.errors, wrapper.depth = [], {}, 0
    if name: wrapper.__name__ = name
    return wrapper

def curry(fn):
    n = fn.__code__.co_argcount
    def go(*a):
        return fn(*a) if len(a) >= n else lambda *b: go(*a, *b)
    return go

@trace
def power(x, n: int = 2, /, *rest, scale=1., **opts) -> torch.Tensor:
    """raise x to n"""
    if n == 0: return torch.ones_like(x)
    h = power(x, n // 2, scale=scale)
    return h * h * (x if n % 2 else 1) * scale

@trace(name='renamed')
def safe_div(a, b): return a / b if not isinstance(b, int) else a // b

@curry
def lin(w, b, x): return w * x + b

def program(x, n, kw):
    power.calls.clear(); power.errors.clear(); safe_div.errors.clear()
    try:
        y = power(x, n, **kw)
    except TypeError as e:
        print(e)
        y = x
    try:
        power()
    except TypeError as e:
        msg = str(e)
    try:
        safe_div(b=0, a=3)
    except ZeroDivisionError as e:
        msg += str(e)
    l = lin(2)
    d = power.__defaults__, power.__wrapped__.__kwdefaults__, power.__wrapped__.__defaults__
    return y, power.calls, power.errors, safe_div.errors, msg, l(1)(x), l(1, x), lin(1, 2, x), safe_div.__name__, power.__doc__, d, str(inspect.signature(power)), inspect.getfullargspec(power.__wrapped__).kwonlyargs, power.depth

CALLS = ["(torch.arange(3.), 3, {})", "(torch.ones(2), 2, {'scale': .5})", "(torch.ones(2), 1, {'zz': 1})", "(torch.ones(1), 0, {'n': 5})", "('a', 2, {})", "(torch.tensor(3), 2, {'scale': 2})"]
