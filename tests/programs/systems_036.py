import torch
from collections import OrderedDict
from functools import wraps

class LRU(OrderedDict):
    def __init__(self, cap, *a, on_evict=None, **k):
        self.cap, self.hits, self.misses, self.on_evict = cap, 0, 0, on_evict
        super().__init__(*a, **k)
    def __getitem__(self, k):
        try: v = super().__getitem__(k)
        except KeyError: self.misses += 1; raise
        self.hits += 1; self.move_to_end(k)
        return v
    def __setitem__(self, k, v):
        if k in self: self.move_to_end(k)
        super().__setitem__(k, v)
        while len(self) > self.cap:
            old = self.popitem(last=False)
            if self.on_evict: self.on_evict(*old)
    def memo(self, fn):
        @wraps(fn)
        def inner(*a):
            key = tuple((tuple(x.shape), float(x.sum())) if isinstance(x, torch.Tensor) else x for x in a)
            try: return self[key]
            except KeyError: pass
            v = self[key] = fn(*a)
            return v
        inner.cache = self
        return inner

class Ring:
    def __init__(self, n): self.buf, self.i, self.n = [None] * n, 0, n
    def push(self, v): self.buf[self.i % self.n] = v; self.i += 1
    def __len__(self): return min(self.i, self.n)
    def __iter__(self):
        start = max(0, self.i - self.n)
        return (self.buf[k % self.n] for k in range(start, self.i))
    def __getitem__(self, k):
        if isinstance(k, slice): return list(self)[k]
        if not -len(self) <= k < len(self): raise IndexError(k)
        return list(self)[k]

def program(keys, cap, x):
    ev = []
    c = LRU(cap, on_evict=lambda k, v: ev.append((k[1], v)))
    ring = Ring(max(cap, 1))
    @c.memo
    def power(t, n):
        print('compute', n)
        return t ** n
    out = []
    for k in keys:
        try: out.append(power(x, k))
        except (TypeError, RuntimeError) as e: out.append(type(e).__name__)
        ring.push(out[-1])
    same = [a is b for a in out for b in out]
    try: first = ring[len(keys) + 5]
    except IndexError as e: first = e.args
    return out, ev, c.hits, c.misses, [k[1] for k in c], list(ring), ring[-1:], same, first, list(c.values())[:1], sum(1 for _ in reversed(c))

CALLS = ["([1,2,1,3,1,2], 2, torch.arange(3.))", "([], 1, torch.ones(1))", "([2,2.0,True,1], 3, torch.ones(2))", "(['a', 1, 1], 0, torch.arange(2))", "([-1, 0], 5, torch.tensor([1,2]))"]
