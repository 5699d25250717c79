import torch
import random

class Transform:
    def __call__(self, s):
        return {k: self.apply(v) if torch.is_tensor(v) else v for k, v in s.items()}
    def __add__(self, o): return Compose([self, o])
    def __repr__(self): return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items() if not k.startswith('_'))})"

class Compose(Transform):
    def __init__(self, ts): self.ts = ts
    def __add__(self, o): return Compose([*self.ts, o])
    def __call__(self, s):
        for t in self.ts: s = t(s)
        return s

class Pad(Transform):
    def __init__(self, p, value=0): self.p, self.value = p, value
    def apply(self, v): return torch.nn.functional.pad(v, (self.p,) * 2, value=self.value)

class RandomChoice(Transform):
    def __init__(self, *ts, rng): self.ts, self._rng = ts, rng
    def __call__(self, s):
        t = self._rng.choice(self.ts)
        s.setdefault('applied', []).append(t.__class__.__name__)
        return t(s)

class Flip(Transform):
    dims = (-1,)
    def apply(self, v): return v.flip(self.dims)

class Roll(Transform):
    def __init__(self, k): self.k = k
    def apply(self, v): return v.roll(self.k, -1)

class Cutout(Transform):
    def __init__(self, rng, n=1): self._rng, self.n = rng, n
    def apply(self, v):
        v = v.clone()
        for _ in range(self.n):
            i = self._rng.randint(0, v.shape[-1] - 1)
            v[..., i:i + 2] = -1
        return v

class Lambda(Transform):
    def __init__(self, f): self._f = f
    apply = property(lambda self: self._f)

def program(sample, seed, n):
    rng = random.Random(seed)
    t = Pad(1) + RandomChoice(Flip(), Roll(2), Lambda(torch.neg), rng=rng) + Cutout(rng, n)
    outs = []
    for ep in range(3):
        s = dict(sample)
        try:
            s = t(s)
        except (ValueError, RuntimeError, NotImplementedError) as e:
            print('failed', type(e).__name__)
            s['error'] = type(e).__name__
        outs.append(s)
    return outs, repr(t), sample.get('applied'), outs[0] is sample, rng.random(), len(t.ts)

CALLS = ["({'img': torch.arange(4.), 'id': 3}, 0, 1)", "({'img': torch.ones(2, 3), 'mask': torch.zeros(2, 3, dtype=torch.long)}, 1, 0)", "({}, 2, 1)", "({'img': torch.ones(2), 'applied': []}, 3, 2)", "({'s': torch.tensor(1.)}, 4, 1)"]
