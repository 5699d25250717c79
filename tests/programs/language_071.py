import torch

class Base:
    seen = []
    def __init__(self, *a, **k):
        Base.seen.append(type(self).__name__)
        super().__init__(*a, **k)
    def forward(self, x): return x
    def __class_getitem__(cls, k): return type(cls.__name__ + str(k), (cls,), {'k': k})

class ScaleMixin:
    k = 2
    def forward(self, x):
        x = super().forward(x)
        self.trace = getattr(self, 'trace', ()) + ('scale',)
        return x * self.k

class ShiftMixin:
    def forward(self, x):
        x = super().forward(x)
        self.trace = getattr(self, 'trace', ()) + ('shift',)
        return x + self.k

class Left(ScaleMixin, Base): pass
class Right(ShiftMixin, Base): k = 1
class Both(Left, Right):
    def forward(self, x, *, deep=True):
        y = super().forward(x)
        z = super(Left, self).forward(x) if deep else x
        skip = super(Right, type(self)).forward.__qualname__
        return y - z, skip

class Late(Base):
    @property
    def forward(self):
        return lambda x: __class__.__name__ and x.neg()

def program(x, name, deep):
    Base.seen = []
    cls = {'both': Both, 'left': Left, 'right': Right, 'late': Late, 'four': Left[4]}[name]
    try:
        m = cls()
        if not deep: Base.__init__(m, 1)
    except TypeError as e:
        print(e)
    out = m.forward(x, deep=deep) if name == 'both' else m.forward(x)
    m.__class__ = Right if deep else cls
    try:
        after = m.forward(x)
    except TypeError as e:
        after = str(e)
    old, Left.k = Left.k, 10
    try:
        now = Left().forward(x)
    finally:
        del Left.k
    try:
        Both.__bases__ = (Right, Left)
        swapped = Both().forward(x)
    finally:
        Both.__bases__ = (Left, Right)
    return out, after, now, swapped, vars(m), Base.seen, [c.__name__ for c in Both.__mro__], Left.k

CALLS = ["(torch.arange(3.), 'both', True)", "(torch.ones(2), 'both', False)", "(torch.ones(2), 'late', False)", "(torch.ones(1), 'four', True)", "(torch.ones(1), 'zz', True)", "(torch.tensor(3), 'right', False)"]
