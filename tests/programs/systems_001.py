import torch, functools, inspect

REGISTRY = {}

def op(name=None, *, version=1, tags=()):
    def deco(fn):
        key = name or fn.__name__
        fn.meta = {'version': version, 'tags': frozenset(tags), 'sig': str(inspect.signature(fn))}
        if key in REGISTRY and REGISTRY[key].meta['version'] >= version:
            raise KeyError(f'{key!r} v{version} <= v{REGISTRY[key].meta["version"]}')
        REGISTRY[key] = fn
        return fn
    return deco if not callable(name) else op()(name)

def traced(fn):
    @functools.wraps(fn)
    def wrapper(*a, **k):
        wrapper.calls += 1
        try:
            return fn(*a, **k)
        finally:
            wrapper.log.append((fn.__name__, len(a), sorted(k)))
    wrapper.calls = 0
    wrapper.log = []
    return wrapper

@op('scale', tags=['math', 'linear'])
def scale(x, *, by=2.0): return x * by

@op('shift', version=2)
@traced
def shift(x, by=1): return x + by

@op('clip')
@traced
def clip(x, lo=0., hi=1.): return x.clamp(lo, hi)

def program(names, x):
    out, errors = {}, []
    for spec in names:
        n, _, arg = spec.partition(':')
        kw = dict(kv.split('=') for kv in arg.split(',')) if arg else {}
        kw = {k: float(v) for k, v in kw.items()}
        try:
            x = REGISTRY[n](x, **kw)
        except KeyError as e:
            errors.append(repr(e)); continue
        except TypeError as e:
            errors.append(str(e)); continue
        out[spec] = x.sum()
    try:
        @op('shift', version=1)
        def again(x): return x
    except KeyError as e:
        errors.append(e.args[0])
    print(len(errors), 'errors')
    new = f'dyn{len(REGISTRY)}'
    op(new, tags=('t',))(lambda x, q=len(names): x * q)
    last = REGISTRY[new](x)
    return out, errors, x, last, {k: v.meta for k, v in REGISTRY.items()}, shift.calls, list(clip.log), shift.__wrapped__ is not shift, shift.__name__

CALLS = ["(['scale:by=3', 'shift', 'clip:lo=0.5'], torch.arange(4.))", "(['nope', 'shift:bye=2'], torch.ones(2,2))",
 "([], torch.zeros(0))", "(['clip:lo=-1,hi=2', 'scale'], torch.linspace(-3,3,7))", "(['shift:by=x'], torch.ones(2))"]
