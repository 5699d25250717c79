import torch

class Config:
    """dotted, frozen-able config with hooks evaluated by formatting, comparison and iteration"""
    __slots__ = ('_d', '_frozen', '__dict__')
    def __init__(self, d=(), **kw):
        object.__setattr__(self, '_d', {})
        object.__setattr__(self, '_frozen', False)
        for k, v in {**dict(d), **kw}.items(): self[k] = v
    def __setitem__(self, k, v):
        if self._frozen: raise PermissionError(k)
        head, dot, tail = k.partition('.')
        if dot: self._d.setdefault(head, Config())[tail] = v
        else: self._d[head] = Config(v) if type(v) is dict else v
    def __getitem__(self, k):
        o = self
        for p in k.split('.'):
            try: o = o._d[p]
            except (KeyError, AttributeError): raise KeyError(k) from None
        return o() if callable(o) and not isinstance(o, Config) else o
    def __getattr__(self, k):
        try: return self[k]
        except KeyError as e: raise AttributeError(*e.args) from e
    __setattr__ = __setitem__
    def __enter__(self): object.__setattr__(self, '_frozen', True); return self
    def __exit__(self, *a): object.__setattr__(self, '_frozen', False); return a[0] is PermissionError
    def __iter__(self):
        for k, v in self._d.items():
            if isinstance(v, Config): yield from ((f'{k}.{a}', b) for a, b in v)
            else: yield k, v
    def __or__(self, o):
        c = Config(dict(self))
        for k, v in (o if isinstance(o, Config) else o.items()): c[k] = v
        return c
    def __ior__(self, o):
        for k, v in dict(o).items(): self[k] = v
        return self
    def __format__(self, spec): return (spec or ',').join(f'{k}={v if not torch.is_tensor(v) else tuple(v.shape)}' for k, v in self)
    def __bool__(self): return bool(self._d)
    def keys(self): return [k for k, _ in self]

def layer(x, *, width, act='relu', **rest): return getattr(torch, act)(x.expand(-1, width) if width else x), sorted(rest)

def program(x, d, over):
    c = Config(d)
    e = c | over
    c |= {'late': lambda: x * 2}
    got = []
    for k in ('model.width', 'model.act', 'nope', 'late', 'model.width.deep'):
        try: got.append(c[k])
        except KeyError as ex: got.append(('missing', *ex.args, ex.__suppress_context__))
    with c as frozen:
        frozen['q'] = 1
        got.append('unreachable')
    try:
        y, rest = layer(x, **dict(e.model))
    except (AttributeError, TypeError, RuntimeError) as ex:
        print(type(ex).__name__)
        y, rest = str(ex)[:40], type(ex.__cause__).__name__
    c.extra = y
    flat = {**e}
    return y, rest, got, f'{e:;}', f'{c}'[:20] if False else len(c.keys()), flat, c.extra is y, hasattr(c, 'zz'), bool(Config()), getattr(c, 'a.b', 'dflt'), frozen is c, vars(c)

CALLS = ["(torch.ones(2, 1), {'model': {'width': 3}}, {'model.act': 'tanh', 'seed': 1})", "(torch.ones(2, 1), {'model.width': 2, 'model.act': 'sigmoid', 'w': torch.ones(2, 2)}, Config(a=1))", "(torch.ones(1, 1), {}, {})", "(torch.ones(1, 2), {'model': {'width': 0, 'x': 1}}, {'model.y': 2})", "(torch.ones(1, 2), {'model': {'width': 5, 'x': 1}}, {})"]
