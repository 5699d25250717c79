import torch

class LazyAttr:
    def __init__(self, fn): self.fn, self.name = fn, fn.__name__
    def __get__(self, o, c):
        if o is None: return self
        v = o.__dict__[self.name] = self.fn(o)
        LOADS.append(self.name)
        return v

LOADS = []

class Proxy:
    __slots__ = ('_obj', '_log')
    def __init__(self, obj):
        object.__setattr__(self, '_obj', obj)
        object.__setattr__(self, '_log', [])
    def __getattribute__(self, name):
        if name in ('_log', '_obj', '__class__'):
            return object.__getattribute__(self, name)
        self._log.append(f'get {name}')
        return getattr(self._obj, name)
    def __setattr__(self, name, v):
        self._log.append(f'set {name}')
        setattr(self._obj, name, v)
    def __delattr__(self, name):
        self._log.append(f'del {name}')
        delattr(self._obj, name)
    def __call__(self, *a, **k): return self._obj(*a, **k)
    def __enter__(self): return self
    def __exit__(self, *a): self._log.append(a[0]); return True

class Features:
    def __init__(self, x): self.x = x
    @LazyAttr
    def mean(self): return self.x.mean(0)
    @LazyAttr
    def centred(self): return self.x - self.mean
    @LazyAttr
    def cov(self): return self.centred.T @ self.centred / max(1, len(self.x) - 1)
    def __call__(self, k): return self.cov.diagonal() * k

def program(x, invalidate):
    LOADS.clear()
    f = Proxy(Features(x))
    a = f(2)
    f.x = x * 3
    b = f.cov
    for n in invalidate:
        try:
            delattr(f, n)
        except AttributeError as e:
            print(n, e)
    c = f.cov
    with f as g:
        g.missing
        LOADS.append('never')
    return a, b is c, c, LOADS, [str(l) for l in f._log], isinstance(f, Features), type(f).__name__, isinstance(Features.mean, LazyAttr), sorted(vars(f._obj))

CALLS = ["(torch.arange(6.).reshape(3, 2), ['cov'])", "(torch.ones(2, 2), ['cov', 'mean', 'centred'])", "(torch.arange(4.).reshape(2, 2), ['nope', 'cov', 'cov'])", "(torch.ones(1, 1), [])", "(torch.zeros(0, 2), ['x'])"]
