import torch
from collections import OrderedDict

class LRU:
    def __init__(self, cap, on_evict=None):
        self.cap, self.on_evict = cap, on_evict
        self._d = OrderedDict()
        self.hits = self.misses = 0
    def __getitem__(self, k):
        v = self._d[k]
        self._d.move_to_end(k)
        return v
    def __setitem__(self, k, v):
        self._d[k] = v
        self._d.move_to_end(k)
        while len(self._d) > self.cap:
            old = self._d.popitem(last=False)
            self.on_evict and self.on_evict(*old)
    def get(self, k, make):
        try:
            v = self[k]
            self.hits += 1
        except KeyError:
            self.misses += 1
            v = self[k] = make()
        return v
    def __missing__(self, k): raise AssertionError

class Key:
    def __init__(self, t): self.t = t
    def __hash__(self): return hash((self.t.shape, self.t.dtype))
    def __eq__(self, o): return torch.equal(self.t, o.t)

def program(xs, cap):
    gone = []
    cache = LRU(cap, lambda k, v: gone.append((k.t.sum().item(), v)))
    outs = []
    for x in xs:
        y = cache.get(Key(x), lambda: x.exp())
        if y.sum() > 3:
            y += 1
            print('bumped')
        outs.append(y)
    shared = [i for i, o in enumerate(outs) if any(o is p for p in outs[:i])]
    return outs, gone, cache.hits, cache.misses, shared, [k.t for k in cache._d]

CALLS = ["([torch.ones(2), torch.ones(2), torch.zeros(2)], 1)", "([torch.ones(2), torch.zeros(2), torch.ones(2), torch.ones(2)], 2)", "([torch.ones(2), torch.ones(3)], 0)", "([], 1)", "([torch.tensor([float('nan')])]*2, 2)"]
