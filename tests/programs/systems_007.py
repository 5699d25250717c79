import torch
from functools import cached_property

class tracked:
    def __init__(self, *deps, default=None): self.deps, self.default = deps, default
    def __set_name__(self, owner, name):
        self.name = '_' + name; self.public = name
        owner.__dict__.get('_tracked', None) or setattr(owner, '_tracked', [])
        owner._tracked.append(name)
    def __get__(self, obj, owner=None):
        if obj is None: return self
        return obj.__dict__.get(self.name, self.default)
    def __set__(self, obj, v):
        if obj.__dict__.get(self.name) is v: obj.log.append(f'{self.public} same'); return
        obj.__dict__[self.name] = v
        for d in self.deps:
            if obj.__dict__.pop(d, None) is not None: obj.log.append(f'{self.public} drops {d}')
    def __delete__(self, obj):
        del obj.__dict__[self.name]

class Stats:
    data = tracked('mean', 'std', 'z')
    scale = tracked('z', default=1.0)
    def __init__(self, data): self.log = []; self.data = data
    @cached_property
    def mean(self): self.log.append('mean'); return self.data.mean()
    @cached_property
    def std(self):
        self.log.append('std'); return ((self.data - self.mean) ** 2).mean().sqrt()
    @cached_property
    def z(self):
        if self.std == 0: raise ZeroDivisionError('flat')
        return (self.data - self.mean) / self.std * self.scale

def program(x, steps):
    s = Stats(x); out = []
    for st in steps:
        try:
            match st:
                case ['set', name, v]: setattr(s, name, v)
                case ['del', name]: delattr(s, name)
                case ['same']: s.data = s.data
                case str(name): out.append((name, getattr(s, name)))
        except (ZeroDivisionError, AttributeError, KeyError, TypeError) as e:
            out.append(f'{type(e).__name__}:{e}')
    print(*s.log, sep='|')
    return out, s.log, sorted(s.__dict__), Stats._tracked, s.__dict__.get('z') is s.__dict__.get('z'), type(Stats.data).__name__

CALLS = ["(torch.arange(4.), ['z', 'z', ['set','scale',3.0], 'z', ['set','data',torch.ones(2)], 'z'])", "(torch.ones(3), ['z', ['same'], 'mean', ['del','data'], 'scale', 'data', 'std'])",
 "(torch.tensor([1.,5.]), [['del','scale'], 'nope', ['set','mean', 100.], 'z', ['del', 'z'], ['del','z']])", "(torch.zeros(0), ['mean'])", "(torch.ones(2), [])"]
