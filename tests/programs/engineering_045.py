import torch
import bisect
from itertools import accumulate

class Episode(list):
    """list of rewards with metadata"""
    def __init__(self, *a, env=None):
        super().__init__(*a)
        self.env = env
    @property
    def ret(self): return sum(self)
    def __lt__(self, o): return self.ret < o.ret
    def discounted(self, g):
        return list(accumulate(reversed(self), lambda acc, r: r + g * acc))[::-1]

class TopBuffer:
    def __init__(self, k): self.k, self.eps = k, []
    def __iadd__(self, ep):
        bisect.insort(self.eps, ep)
        if len(self.eps) > self.k:
            dropped = self.eps.pop(0)
            print('dropped', dropped.env)
        return self
    def __matmul__(self, w):
        return torch.stack([torch.tensor(e.discounted(.5)).sum() * w for e in self.eps]) if self.eps else None
    def __bool__(self): return len(self.eps) >= self.k

def program(rewards, k, w):
    buf = TopBuffer(k)
    alias = buf
    for env, r in rewards.items():
        ep = Episode(r.tolist(), env=env)
        buf += ep
        if buf and buf.eps[0].ret > 0:
            w = w * 0.5
    res = buf @ w
    names = [e.env for e in buf.eps]
    e0 = buf.eps[0] if buf.eps else None
    copy = e0[:] if e0 is not None else None
    return res, names, e0, type(copy).__name__, alias is buf, w, bool(buf)

CALLS = ["({'a': torch.tensor([1.,2.]), 'b': torch.tensor([-1.]), 'c': torch.tensor([5.])}, 2, torch.tensor(2.))", "({}, 1, torch.ones(2))", "({'q': torch.zeros(0), 'p': torch.arange(3.)}, 3, torch.ones(1))"]
