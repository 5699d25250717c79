import torch

class Unit:
    """units with __class_getitem__, class operators through metaclass and caching of derived classes"""
    class Meta(type):
        made = {}
        def __mul__(cls, o):
            key = tuple(sorted((cls.__name__, o.__name__)))
            if key not in cls.made:
                cls.made[key] = type(cls)('·'.join(key), (Unit,), {'factor': cls.factor * o.factor})
            return cls.made[key]
        def __rmul__(cls, x): return cls(x)
        def __lt__(cls, o): return cls.factor < o.factor
        def __getattr__(cls, n):
            if n.startswith('kilo_'): return type(cls)(n, (Unit,), {'factor': cls.factor * 1000})
            raise AttributeError(f'unit {cls.__name__} lacks {n}')
        def __iter__(cls): yield from cls.made
        def __instancecheck__(cls, o): return type(o) is not int and type.__instancecheck__(cls, o)
        def __hash__(cls): return type.__hash__(cls)
        @property
        def si(cls): return f'{cls.__name__}={cls.factor:g}'

class Unit(metaclass=Unit.Meta):
    factor = 1.0
    def __init__(self, v): self.v = v
    def to(self, u): return u(self.v * type(self).factor / u.factor)
    def __mul__(self, o): return (type(self) * type(o))(self.v * o.v)
    def __add__(self, o): return type(self)(self.v + o.to(type(self)).v)
    def __eq__(self, o): return bool(torch.allclose(torch.as_tensor(self.v * self.factor), torch.as_tensor(o.v * o.factor)))

class Metre(Unit): pass
class Inch(Unit): factor = 0.0254

def program(x, n):
    type(Unit).made.clear()
    a, b = x * Metre if False else Metre(x), n * Inch
    s = a + b
    area = a * b
    same = type(area) is Metre * Inch is Inch * Metre
    try:
        Metre.mega
    except AttributeError as e:
        msg = str(e)
    k = Metre.kilo_metre
    if a == b: print('equal')
    big = max(Metre, Inch, k)
    try:
        sorted([Metre, 3])
    except TypeError as e:
        msg += '; ' + str(e)
    return s.v, area.v, type(area).__name__, same, msg, k.si, big.__name__, list(Unit), s.to(Inch).v, isinstance(3, Unit), isinstance(a, Unit), a.to(k).v, Metre.kilo_metre is k, sorted([k, Inch, Metre])[0].__name__, a != a

CALLS = ["(torch.arange(3.), 2.0)", "(torch.ones(1) * 0.0254, 1)", "(torch.zeros(0), 3)", "(2.0, torch.ones(2))", "(torch.tensor([1, 2]), torch.tensor(2))"]
