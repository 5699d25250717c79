import torch
from enum import Flag, IntEnum, auto

class Aug(Flag):
    NONE = 0
    FLIP = auto()
    CROP = auto()
    NOISE = auto()
    NORM = auto()
    LIGHT = FLIP | NORM
    ALL = FLIP | CROP | NOISE | NORM

class Level(IntEnum):
    LOW = 1
    HIGH = 3

class Pipeline:
    def __init__(self, flags, level=Level.LOW, seed=0):
        self.flags, self.level = flags, level
        self.g = torch.Generator().manual_seed(seed)
        self.applied = Aug.NONE

    def flip(self, x): return x.flip(-1)
    def crop(self, x):
        k = int(self.level)
        if x.shape[-1] <= 2 * k:
            raise ValueError('too small to crop')
        return x[..., k:-k]
    def noise(self, x): return x + self.level * 0.1 * torch.randn(x.shape, generator=self.g)
    def norm(self, x): return (x - x.mean()) / (x.std() + 1e-5)

    def __call__(self, x):
        for f in (Aug.FLIP, Aug.CROP, Aug.NOISE, Aug.NORM):
            if f in self.flags:
                try:
                    x = getattr(self, f.name.lower())(x)
                except ValueError as e:
                    print(f.name, e)
                    continue
                self.applied |= f
        return x

def program(x, flags, level, seed):
    p = Pipeline(Aug(flags), Level(level), seed)
    y = p(x)
    match p.applied:
        case Aug.NONE:
            d = 'nothing'
        case Aug.LIGHT:
            d = 'light'
        case a if a & Aug.NOISE:
            d = f'noisy {p.level!r}'
        case _:
            d = str(p.applied)
    left = p.flags & ~p.applied
    return y, d, repr(left), p.applied == p.flags, x is y, p.level + 1, f'{p.level:03d}', sorted(Level.__members__)

CALLS = ["(torch.arange(6.), 15, 1, 0)", "(torch.arange(4.), 15, 3, 1)", "(torch.ones(2, 3), 0, 1, 0)", "(torch.arange(5.), 9, 1, 0)", "(torch.arange(5.), 2, 1, 0)", "(torch.arange(5.), 2, 2, 0)"]
