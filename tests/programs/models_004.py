import torch, copy
from functools import reduce, partial
class Compose:
    def __init__(self, *fns): self.fns = fns
    def __call__(self, x): return reduce(lambda acc, f: f(acc), self.fns, x)
    def __add__(self, other):
        if not callable(other): return NotImplemented
        return Compose(*self.fns, *(other.fns if isinstance(other, Compose) else (other,)))
    def __radd__(self, other):
        return Compose(other, *self.fns)
    def __repr__(self):
        return 'Compose(' + ', '.join(getattr(f, '__name__', type(f).__name__) for f in self.fns) + ')'

class RandomFlip:
    def __init__(self, p, g): self.p, self.g = p, g
    def __call__(self, x):
        return x.flip(-1) if torch.rand(1, generator=self.g) < self.p else x
class Cutout:
    calls = 0
    def __init__(self, size, g): self.size, self.g = size, g
    def __call__(self, x):
        type(self).calls += 1
        h, w = x.shape[-2:]
        i = int(torch.randint(0, max(1, h - self.size + 1), (1,), generator=self.g))
        j = int(torch.randint(0, max(1, w - self.size + 1), (1,), generator=self.g))
        x = x.clone()
        x[..., i:i + self.size, j:j + self.size] = 0
        return x
def normalize(x, mean=0., std=1.):
    return (x - mean) / std

def program(img, seed, size):
    g = torch.Generator().manual_seed(seed)
    base = Compose(RandomFlip(0.5, g)) + Cutout(size, g)
    chain = torch.relu + base + partial(normalize, mean=img.mean(), std=2.0)
    outs = [chain(img) for _ in range(3)]
    print(chain, len(chain.fns))
    try:
        chain + 3
    except TypeError as e:
        msg = str(e)
    twin = copy.copy(chain)
    return outs, msg, twin.fns is chain.fns, Cutout.calls, [f.__class__.__name__ for f in chain.fns], outs[0] is outs[1]
CALLS = ["(torch.arange(16.).reshape(1,4,4), 0, 2)", "(torch.arange(-6., 6.).reshape(3,4), 1, 1)", "(torch.zeros(1,2,2), 2, 5)", "(torch.ones(0,3,3), 3, 2)", "(torch.arange(16.).reshape(1,4,4), 0, 2)"]
