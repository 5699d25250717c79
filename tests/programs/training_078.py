import torch

class Log(torch.Tensor):
    """subclass with history kept in __torch_function__; survives ops, not detach"""
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(out, Log) and func is not torch.Tensor.__repr__:
            out.trail = [*getattr(next((a for a in args if isinstance(a, Log)), None), 'trail', []), getattr(func, '__name__', '?')]
        return out
    @property
    def last(self): return self.trail[-1] if getattr(self, 'trail', None) else None
    def rename_last(self, n): self.trail[-1] = n; return self

class Quiet(Log):
    __torch_function__ = torch._C._disabled_torch_function_impl

class Named:
    """not a tensor: duck type with __torch_function__"""
    HANDLED = {}
    def __init__(self, t, name): self.t, self.name = t, name
    @classmethod
    def implements(cls, *fs):
        def deco(g):
            for f in fs: cls.HANDLED[f] = g
            return g
        return deco
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in cls.HANDLED: return NotImplemented
        return cls.HANDLED[func](*args, **(kwargs or {}))
@Named.implements(torch.add, torch.Tensor.add)
def _add(a, b, **k):
    un = lambda v: v.t if isinstance(v, Named) else v
    return Named(torch.add(un(a), un(b), **k), f"{getattr(a, 'name', '')}+{getattr(b, 'name', '')}")
@Named.implements(torch.mean)
def _mean(a, *r): return a.t.mean(*r)

def program(x, how):
    a = x.as_subclass(Log)
    b = (a + 1).relu() * x
    c = torch.cat([b, b]).sum()
    if c > 3: print('big', type(c).__name__)
    b += 1
    q = (x.as_subclass(Quiet) * 2)
    n = Named(x, 'n')
    m = torch.add(n, x, alpha=2) if how != 'fail' else n
    try: z = torch.mul(m, 2)
    except TypeError as e: z = str(e)[:35]
    p = torch.nn.Parameter(a) if x.is_floating_point() else a
    with torch._C.DisableTorchFunctionSubclass(): raw = a + 1
    it = [type(v).__name__ for v in a]
    s = a[:1]; s.rename_last('mine') if getattr(s, 'trail', None) else None
    return b.as_subclass(torch.Tensor), b.last, b.trail, c.trail, type(q).__name__, m.name, m.t, z, torch.mean(m), isinstance(p, Log), type(p).__name__, type(raw).__name__, it, s.trail, type(a.data).__name__, type(a.numpy()).__name__, type(a.tolist()).__name__, a.shape, type(x + a).__name__, type(torch.ones_like(a)).__name__

CALLS = ["(torch.arange(3.), '')", "(torch.ones(2,2), 'fail')", "(torch.ones(0), '')", "(torch.arange(3), '')"]
