import torch
import inspect

class Typed:
    def __init__(self, kind, default=None):
        self.kind, self.default = kind, default
    def __set_name__(self, owner, name):
        self.name = '_' + name
        owner.__dict__.get('_typed', None)
        owner._fields = getattr(owner, '_fields', ()) + (name,)
    def __get__(self, obj, cls=None):
        if obj is None: return self
        return getattr(obj, self.name, self.default)
    def __set__(self, obj, value):
        if not isinstance(value, self.kind):
            raise TypeError(f'{self.name[1:]} must be {self.kind.__name__}, not {type(value).__name__}')
        obj.__dict__.setdefault('_history', []).append(self.name[1:])
        setattr(obj, self.name, value)
    def __delete__(self, obj):
        delattr(obj, self.name)

class Model:
    def __init_subclass__(cls):
        super().__init_subclass__()
        sig = [inspect.Parameter(f, inspect.Parameter.KEYWORD_ONLY) for f in cls._fields]
        cls.__signature__ = inspect.Signature(sig)
    def __init__(self, **kw):
        bound = type(self).__signature__.bind_partial(**kw)
        for k, v in bound.arguments.items():
            setattr(self, k, v)

class Conf(Model):
    lr = Typed(float, 0.1)
    layers = Typed(int, 1)
    init = Typed(torch.Tensor)

class Big(Conf):
    heads = Typed(int, 4)

def program(cls, kw, x):
    cls = globals()[cls]
    try:
        c = cls(**kw)
    except TypeError as e:
        print('bad', e)
        return str(e), str(cls.__signature__)
    for i in range(c.layers):
        x = x * c.lr + i
        if c.init is not None:
            x = x + c.init
    if 'heads' in c._fields:
        c.heads += 1
    try:
        del c.lr
        again = c.lr
        del c.lr
    except AttributeError as e:
        again = (again, str(e)[-4:])
    return x, c._history, again, sorted(vars(c)), cls.lr.default, cls._fields, str(cls.__signature__)

CALLS = ["('Conf', {'lr': 0.5, 'layers': 2}, torch.arange(3.))", "('Big', {'init': torch.ones(2), 'lr': 2.0}, torch.ones(2))", "('Conf', {'lr': 1}, torch.ones(1))",
 "('Conf', {'q': 1}, torch.ones(1))", "('Big', {'layers': 3, 'lr': .5}, torch.empty(0, 2))"]
