import torch

class Registry(dict):
    def register(self, name=None, *, aliases=()):
        def deco(obj):
            key = name or obj.__name__.lower()
            if key in self:
                raise KeyError(f'{key} registered twice')
            for k in (key, *aliases): self[k] = obj
            obj.registered = key
            return obj
        return deco if not callable(name) else (lambda f, n=name: None) 
    def build(self, cfg):
        cfg = dict(cfg)
        cls = self[cfg.pop('type')]
        for k, v in list(cfg.items()):
            if isinstance(v, dict) and 'type' in v: cfg[k] = self.build(v)
            elif isinstance(v, list): cfg[k] = [self.build(c) if isinstance(c, dict) else c for c in v]
        try:
            return cls(**cfg)
        except TypeError as e:
            raise TypeError(f'{cls.__name__}: {e}') from e

R = Registry()

@R.register(aliases=['fc'])
class Dense(torch.nn.Module):
    def __init__(self, n, m, *, fill=1.0):
        super().__init__()
        self.w = torch.nn.Parameter(torch.full((n, m), fill))
        self.register_buffer('count', torch.zeros((), dtype=torch.long))
    def forward(self, x):
        self.count += len(x)
        return x @ self.w

@R.register('res')
class Residual(torch.nn.Module):
    def __init__(self, inner, scale=1):
        super().__init__()
        self.inner, self.scale = inner, scale
    def forward(self, x):
        y = self.inner(x)
        return x + self.scale * y if y.shape == x.shape else y
    def extra_repr(self): return f'scale={self.scale}'

@R.register('seq')
def Seq(layers): return torch.nn.Sequential(*layers)

def program(cfg, x):
    try:
        m = R.build(cfg)
        y = m(x)
    except (KeyError, TypeError, RuntimeError) as e:
        print(type(e).__name__)
        return str(e)[:60], type(e.__cause__).__name__, x.sum()
    y.sum().backward()
    try:
        R.register('fc')(Dense)
    except KeyError as e:
        dup = e.args[0]
    return y.detach(), {k: v.clone() for k, v in m.state_dict().items()}, [(n, p.grad) for n, p in m.named_parameters()], repr(m), dup, Dense.registered, sorted(R), [type(c).__name__ for c in m.modules()]

CALLS = ["({'type': 'seq', 'layers': [{'type': 'dense', 'n': 2, 'm': 3}, {'type': 'res', 'inner': {'type': 'fc', 'n': 3, 'm': 3, 'fill': .5}}]}, torch.ones(2, 2))",
 "({'type': 'res', 'inner': {'type': 'fc', 'n': 2, 'm': 1}, 'scale': 3}, torch.ones(1, 2))", "({'type': 'fc', 'q': 1}, torch.ones(1))", "({'type': 'nope'}, torch.ones(1))", "({'type': 'fc', 'n': 3, 'm': 1}, torch.ones(2))", "({'type': 'fc', 'n': 3, 'm': 1}, torch.ones(0, 3))"]
