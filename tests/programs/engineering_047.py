import torch

class Registry(dict):
    def __init__(self, name): super().__init__(); self._name = name; self.aliases = {}
    def register(self, fn=None, *, name=None, alias=()):
        if fn is None:
            return lambda f: self.register(f, name=name, alias=alias)
        key = name or fn.__name__
        if key in self:
            raise KeyError(f'{key} already in {self._name}')
        self[key] = fn
        for a in alias:
            self.aliases[a] = key
        return fn
    def __missing__(self, key):
        try:
            return self[self.aliases[key]]
        except KeyError:
            raise LookupError(f'{self._name} has no {key!r}') from None

ops = Registry('ops')

@ops.register
def relu(x): return x.relu()
@ops.register(name='scale', alias=('mul', 'times'))
def _scale(x, k=2.0): return x * k
@ops.register(alias=['avg'])
def mean(x, dim=-1, *, keepdim=False): return x.mean(dim, keepdim=keepdim)
@ops.register
class Offset:
    def __init__(self, by): self.by = by
    def __call__(self, x): return x + self.by

def run(x, spec):
    for item in spec:
        match item:
            case str(name):
                x = ops[name](x)
            case (name, dict(kw)):
                x = ops[name](x, **kw)
            case [name, *args] if isinstance(ops[name], type):
                x = ops[name](*args)(x)
            case _:
                raise TypeError(f'bad {item!r}')
        if x.isnan().any():
            print('nan after', item)
    return x

def program(x, spec):
    try:
        return run(x, spec), sorted(ops)
    except LookupError as e:
        return str(e), e.__cause__, e.__suppress_context__, type(e.__context__).__name__
    except TypeError as e:
        return e.args

CALLS = ["(torch.arange(-2.,2.), ['relu', ('mul', {'k': 3.}), ['Offset', 1]])", "(torch.ones(2,3), [('avg', {'keepdim': True}), 'scale'])", "(torch.ones(2), ['nope'])", "(torch.tensor([float('nan')]), ['scale', 5])", "(torch.ones(2), [('mean', {'dim': 0}), ['relu', 2]])"]
