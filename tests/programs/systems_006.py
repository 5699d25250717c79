import torch, inspect, typing

class Container:
    def __init__(self, parent=None):
        self.parent, self.providers, self.instances, self.building = parent, {}, {}, []
    def register(self, key, factory=None, *, singleton=True):
        self.providers[key] = (factory or key, singleton)
        return self
    def resolve(self, key):
        if key in self.instances: return self.instances[key]
        if key in self.building:
            raise RecursionError(' -> '.join(getattr(k, '__name__', str(k)) for k in self.building + [key]))
        if key not in self.providers:
            if self.parent: return self.parent.resolve(key)
            raise LookupError(f'no provider for {key!r}' if isinstance(key, str) else f'no provider for {key.__name__}')
        factory, single = self.providers[key]
        self.building.append(key)
        try:
            target = factory.__init__ if inspect.isclass(factory) else factory
            kw = {}
            for n, p in inspect.signature(factory).parameters.items():
                ann = p.annotation
                if ann is p.empty: ann = n
                ann = globals().get(ann, ann) if isinstance(ann, str) else ann
                try:
                    kw[n] = self.resolve(ann)
                except LookupError:
                    if p.default is p.empty: raise
            obj = factory(**kw)
        finally:
            self.building.pop()
        if single: self.instances[key] = obj
        return obj

class Weights:
    made = 0
    def __init__(self, size, scale=2.0):
        type(self).made += 1
        self.w = torch.eye(size) * scale
class Layer:
    def __init__(self, w: Weights, bias): self.w, self.bias = w, bias
    def __call__(self, x): return x @ self.w.w + self.bias
class Net:
    def __init__(self, first: Layer, second: Layer, missing: 'ghost' = None): self.layers = [first, second]; self.missing = missing
class A:
    def __init__(self, b: 'b'): pass

def program(x, single, overrides):
    c = Container()
    c.register('size', lambda: x.shape[-1]).register('bias', lambda: torch.full((x.shape[-1],), .5))
    c.register(Weights).register(Layer, singleton=single).register(Net)
    c.register(A).register('b', lambda a: a, singleton=False).register('a', lambda b: b)
    child = Container(c)
    for k, v in overrides.items():
        child.register(k, lambda v=v: v)
    net = c.resolve(Net)
    y = x
    for l in net.layers: y = l(y).relu()
    res = []
    for k in (A, 'nothing', 'bias', Net):
        try: res.append(child.resolve(k) if k != Net else child.resolve(k) is net)
        except (RecursionError, LookupError) as e: res.append(f'{type(e).__name__}: {e}')
    print(res[0])
    return y, res, net.layers[0] is net.layers[1], net.layers[0].w is net.layers[1].w, Weights.made, net.missing, c.building

CALLS = ["(torch.ones(2,3), True, {})", "(torch.arange(4.).reshape(2,2)-2, False, {'bias': 7})", "(torch.zeros(0,2), True, {'size': 9, 'nothing': None})", "(torch.tensor(3.), True, {})"]
