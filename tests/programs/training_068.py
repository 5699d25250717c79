import torch, random, math
import numpy as np

class Augment:
    def __init__(self, *ops, p=1.0): self.ops, self.p = ops, p
    def __call__(self, x, rng):
        for op in self.ops:
            if rng.random() < self.p:
                x = op(x, rng)
        return x
    def __rshift__(self, o): return Augment(self, o)
    def __repr__(self): return f"{type(self).__name__}({', '.join(getattr(o, '__name__', repr(o)) for o in self.ops)})"

class OneOf(Augment):
    def __call__(self, x, rng): return rng.choice(self.ops)(x, rng)

def hflip(x, rng): return x.flip(-1)
def shift(x, rng): return torch.roll(x, rng.randint(-1, 1), -1)
def cutout(x, rng):
    i, j = rng.randrange(x.shape[-2]), rng.randrange(x.shape[-1])
    x = x.clone(); x[..., i, j:j + 2] = 0
    return x
def jitter(x, rng): return x * rng.uniform(.5, 1.5)

def mixup(x, y, rng):
    lam = rng.betavariate(2, 2)
    perm = list(range(len(x))); rng.shuffle(perm)
    return lam * x + (1 - lam) * x[perm], lam * y + (1 - lam) * y[perm], round(lam, 6)

def program(x, y, seed, p):
    rng = random.Random(seed)
    aug = Augment(hflip, jitter, p=p) >> OneOf(cutout, shift) if seed != 3 else OneOf()
    print(aug)
    try:
        out = [aug(xi, rng) for xi in x]
    except IndexError as e:
        return str(e), x.sum(), rng.getstate()[1][-1]
    except ValueError as e:
        out = [x]
    random.seed(seed); np.random.seed(seed); torch.manual_seed(seed)
    a = random.random(), np.random.rand(2).round(3).tolist(), torch.rand(2), random.sample(range(5), 2)
    order = torch.randperm(len(x)).tolist()
    m = mixup(x, y, rng) if len(x) else None
    theta = math.radians(90)
    rot = torch.tensor([[math.cos(theta), -math.sin(theta)], [math.sin(theta), math.cos(theta)]])
    grid = torch.nn.functional.affine_grid(torch.cat([rot, torch.zeros(2, 1)], 1)[None], (1, 1, *x.shape[-2:]), align_corners=False)
    r = torch.nn.functional.grid_sample(x[:1], grid, align_corners=False) if x.dim() == 4 and len(x) else None
    return out, a, order, m, r, [o is xi for o, xi in zip(out, x)], random.getstate()[1][-1], np.random.get_state()[2]

CALLS = ["(torch.arange(18.).reshape(2,1,3,3), torch.eye(2), 0, 1.)", "(torch.arange(12.).reshape(2,1,2,3), torch.eye(2), 5, .5)", "(torch.ones(2,1,2,2), torch.eye(2), 3, .5)", "(torch.ones(0,1,2,2), torch.eye(2)[:0], 1, .5)", "(torch.ones(1,2,2), torch.ones(1), 2, 0)", "(torch.ones(1,0,2), torch.ones(1), 2, 1)"]
