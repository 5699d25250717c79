import torch

class Lens:
    """descriptor giving a named slice of a flat parameter vector"""
    def __init__(self, *shape): self.shape = shape
    def __set_name__(self, owner, name):
        self.name = name
        owner.layout = {**getattr(owner, 'layout', {}), name: self}
    def bounds(self, owner):
        off = 0
        for n, l in owner.layout.items():
            size = 1
            for s in l.shape: size *= s
            if n == self.name: return off, off + size
            off += size
    def __get__(self, obj, owner=None):
        if obj is None: return self
        a, b = self.bounds(type(obj))
        return obj.flat[a:b].view(self.shape)
    def __set__(self, obj, value):
        obj.writes.append(self.name)
        self.__get__(obj, type(obj))[...] = value
    def __delete__(self, obj):
        self.__get__(obj).zero_()

class Base:
    w = Lens(2, 3)
    b = Lens(2)
    def __init__(self, flat):
        self.flat, self.writes = flat, []
    def __call__(self, x): return x @ self.w.T + self.b

class Wide(Base):
    gain = Lens()
    def __call__(self, x):
        return super().__call__(x) * self.gain

def program(cls, flat, x, edits):
    m = globals()[cls](flat)
    y = m(x)
    for name, v in edits.items():
        try:
            setattr(m, name, v)
        except (RuntimeError, TypeError) as e:
            print('edit', name, type(e).__name__)
    y2 = m(x)
    m.b += 1
    m.w *= 2
    if m.w.sum() > m.b.sum():
        del m.w
    y3 = m(x)
    return y, y2, y3, m.flat is flat, flat, m.writes, list(type(m).layout), isinstance(Base.w, Lens), Base.__dict__['w'].bounds(Wide), vars(m).keys() - {'flat', 'writes'}

CALLS = ["('Base', torch.arange(8.), torch.ones(2,3), {'b': 5})", "('Wide', torch.arange(9.), torch.ones(3), {'w': torch.ones(3), 'gain': 2})", "('Wide', torch.zeros(9), torch.ones(1,3), {'w': torch.ones(4), 'other': 1, 'b': None})", "('Base', torch.ones(7), torch.ones(3), {})", "('Base', -torch.ones(20), torch.ones(0,3), {'b': torch.tensor([1,2])})", "('Nope', torch.ones(1), torch.ones(1), {})"]
