import torch
from typing import Generic, TypeVar, get_type_hints, Optional, Union, get_origin, get_args, Annotated

K = TypeVar('K')

class Field:
    def __init__(self, t, default): self.t, self.default = t, default
    def check(self, v):
        o = get_origin(self.t)
        if o is Union: return any(Field(a, None).check(v) for a in get_args(self.t))
        if o is Annotated: base, *meta = get_args(self.t); return Field(base, None).check(v) and all(m(v) for m in meta)
        if o in (list, tuple): return isinstance(v, o) and all(Field(a, None).check(e) for a, e in zip(get_args(self.t), v))
        return isinstance(v, self.t)

positive = lambda v: v > 0

class Schema:
    def __init__(self, **kw):
        hints = get_type_hints(type(self), include_extras=True)
        for n, t in hints.items():
            f = Field(t, getattr(type(self), n, None))
            v = kw.pop(n, f.default)
            if not f.check(v): raise TypeError(f'{n}={v!r} is no {t}' if not torch.is_tensor(v) else f'{n}: tensor')
            setattr(self, n, v)
        if kw: raise TypeError(f'unknown {[*kw]}')

class TrainConfig(Schema):
    lr: Annotated[float, positive] = 0.1
    steps: int = 2
    init: Optional[torch.Tensor] = None
    dims: list[int] = [1]
    name: Union[str, None, int] = 'x'

class Typed(Generic[K]):
    items: dict = {}
    def __init__(self): self.kind = getattr(self, '__orig_class__', None)
    def set(self, k: K, v): self.items[k] = v; return self

def program(kw, x):
    Typed.items.clear()
    try:
        c = TrainConfig(**kw)
    except TypeError as e:
        print('config:', e)
        return str(e), x - 1
    s = Typed[int]()
    for i in range(c.steps):
        x = x - c.lr * (x if c.init is None else x - c.init)
        s.set(i, x.sum())
    return x, s.items, s.kind, str(c.name), c.dims is TrainConfig.dims, vars(c).keys() == TrainConfig.__annotations__.keys(), get_args(Typed[str]), program.__annotations__

CALLS = ["({'lr': .5, 'init': torch.ones(2)}, torch.zeros(2))", "({'lr': -1.0}, torch.ones(1))", "({}, torch.ones(3))", "({'q': 1}, torch.ones(1))", "({'dims': [1, 'a'], 'steps': 0}, torch.ones(1))", "({'dims': (1,)}, torch.ones(1))"]
