import torch
from weakref import WeakKeyDictionary, ref

class RunningNorm:
    instances = WeakKeyDictionary()
    def __init__(self, dim, clip=5.0):
        self.mean = torch.zeros(dim)
        self.var = torch.ones(dim)
        self.count = 1e-4
        self.clip = clip
        RunningNorm.instances[self] = dim
    def update(self, x):
        bm, bv, bc = x.mean(0), x.var(0, unbiased=False), x.shape[0]
        delta = bm - self.mean
        tot = self.count + bc
        self.mean += delta * bc / tot
        m2 = self.var * self.count + bv * bc + delta ** 2 * self.count * bc / tot
        self.var, self.count = m2 / tot, tot
    def __call__(self, x, update=True):
        update and self.update(x)
        return ((x - self.mean) / (self.var + 1e-8).sqrt()).clamp(-self.clip, self.clip)
    def __getstate__(self):
        return {'mean': self.mean, 'var': self.var, 'count': self.count, 'clip': self.clip}

def program(xs):
    import copy
    norm = RunningNorm(xs[0].shape[-1])
    view = norm.mean
    outs = [norm(x) for x in xs]
    snap = copy.deepcopy(norm)
    frozen = norm(xs[-1], update=False)
    outs.append(norm(xs[0] * 100))
    if (outs[-1].abs() == norm.clip).any():
        print('clipped', int((outs[-1].abs() == norm.clip).sum()))
    registered = len([k for k in RunningNorm.instances if k is norm or k is snap])
    r = ref(norm)
    same = r() is norm
    return outs, frozen, snap.mean, norm.mean, view is norm.mean, norm.count, registered, same

CALLS = ["([torch.arange(6.).reshape(3,2)],)", "([torch.arange(6.).reshape(3,2), torch.ones(4,2)],)", "([torch.ones(1,1)],)", "([],)", "([torch.ones(0,2)],)"]
