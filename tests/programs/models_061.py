import torch
class Typed:
    def __init__(self, kind, *checks): self.kind, self.checks = kind, checks
    def __set_name__(self, owner, name): self.name = name; owner.__dict__.get('_fields', []).append(name)
    def __get__(self, obj, owner=None):
        if obj is None: return self
        try: return obj.__dict__[self.name]
        except KeyError: raise AttributeError(f'{owner.__name__}.{self.name} unset') from None
    def __set__(self, obj, v):
        if not isinstance(v, self.kind): raise TypeError(f'{self.name} wants {self.kind.__name__}, got {type(v).__name__}')
        for c in self.checks:
            if not c(v): raise ValueError(f'{self.name} fails {c.__name__}')
        old = obj.__dict__.get(self.name); obj.__dict__[self.name] = v
        obj.changes.append((self.name, old is v))
    def __delete__(self, obj): obj.__dict__.pop(self.name)
def positive(v): return bool((v > 0).all()) if torch.is_tensor(v) else v > 0
class lazy:
    def __init__(self, f): self.f = f
    def __set_name__(self, o, n): self.n = n
    def __get__(self, obj, o): 
        if obj is None: return self
        v = obj.__dict__[self.n] = self.f(obj); return v
class Gaussian:
    _fields = []
    mu = Typed(torch.Tensor); sigma = Typed(torch.Tensor, positive); n = Typed(int, positive)
    def __init__(self, **k):
        self.changes = []
        for a, v in k.items(): setattr(self, a, v)
    @lazy
    def table(self): print('table built'); return self.mu + self.sigma * torch.linspace(-1, 1, self.n)[:, None]
def program(kw, new):
    try: g = Gaussian(**kw)
    except (TypeError, ValueError) as e: return type(e).__name__, str(e)
    try: t = g.table; same = g.table is t
    except AttributeError as e: t, same = str(e), None
    for k, v in new.items():
        try: setattr(g, k, v)
        except Exception as e: g.changes.append(str(e))
    try: del g.mu; g.mu
    except (AttributeError, KeyError) as e: gone = type(e).__name__, str(e)
    return t, same, g.changes, gone, Gaussian._fields, sorted(vars(g)), Gaussian.mu.name, isinstance(Gaussian.table, lazy)
CALLS = ["({'mu':torch.zeros(2),'sigma':torch.ones(2),'n':3}, {'n':-1,'mu':torch.ones(1)})", "({'mu':1.}, {})", "({'sigma':torch.zeros(1)}, {})", "({'sigma':torch.ones(1)}, {'n':2,'extra':5})", "({'mu':torch.ones(1),'sigma':torch.ones(1),'n':True}, {'n':'x'})"]
