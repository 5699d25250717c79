import torch
from torch import nn
import types

class Dyn(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.l = nn.Linear(d, d, bias=False)
        nn.init.eye_(self.l.weight)
    def forward(self, x): return self.l(x)

def with_residual(fwd):
    def forward(self, x, *a):
        return x + fwd(x, *a)
    return forward

def count(cls):
    orig = cls.__call__
    def call(self, *a, **k):
        cls.n_calls += 1
        return orig(self, *a, **k)
    cls.n_calls = 0
    cls.__call__ = call
    return lambda: setattr(cls, '__call__', orig)

def program(x, patches):
    d = x.shape[-1]
    m = Dyn(d)
    undo, ys = None, [m(x)]
    for p in patches:
        if p == 'instance':
            m.forward = types.MethodType(with_residual(m.forward), m)
        elif p == 'lambda':
            m.forward = lambda x: -x
        elif p == 'del':
            try: del m.forward
            except AttributeError as e: print('no own forward')
        elif p == 'class':
            m.__class__ = type('Dyn2', (Dyn,), {'forward': lambda self, x: super(type(self), self).forward(x) * 3})
        elif p == 'count':
            undo = count(Dyn)
        elif p == 'undo' and undo:
            undo(); undo = None
        elif p == 'F':
            old = torch.nn.functional.linear
            torch.nn.functional.linear = lambda i, w, b=None: old(i, w, b) + 100
        elif p == 'unF':
            torch.nn.functional.linear = old
        elif p == 'tensor':
            torch.Tensor.double_it = lambda t: t + t
            m.l.register_forward_hook(lambda mod, i, o: o.double_it())
        elif p == 'compile':
            m.l = torch.nn.utils.skip_init(nn.Identity) if False else nn.Identity()
        ys.append(m(x))
        if ys[-1].sum() < 0: print(p, 'negative')
    if undo: undo()
    if hasattr(torch.Tensor, 'double_it'): del torch.Tensor.double_it
    return ys, type(m).__name__, 'forward' in m.__dict__, getattr(Dyn, 'n_calls', None), isinstance(m, Dyn), list(m._modules)

CALLS = ["(torch.ones(2,2), ['instance', 'class', 'del'])", "(torch.ones(2,2), ['count', 'lambda', 'instance', 'undo'])", "(torch.ones(1,2), ['F', 'unF', 'del'])", "(torch.ones(1,2), ['tensor', 'compile', 'count', 'tensor'])", "(torch.ones(0,2), [])", "(torch.ones(0,2), ['class','class'])"]
