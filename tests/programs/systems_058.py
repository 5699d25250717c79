import torch
from collections import deque

class PoolError(RuntimeError): pass
class Buf:
    made = 0
    def __init__(self, n): Buf.made += 1; self.t = torch.zeros(n); self.uses = 0; self.n = n
    def __repr__(self): return f'Buf{self.n}x{self.uses}'

class Pool:
    def __init__(self, factory, cap, *, reset=None): self.factory, self.cap, self.reset, self.idle, self.out, self.waiters = factory, cap, reset, deque(), {}, 0
    def acquire(self):
        if self.idle: b = self.idle.pop()
        elif len(self.out) < self.cap: b = self.factory()
        else: self.waiters += 1; raise PoolError(f'exhausted ({len(self.out)}/{self.cap})')
        b.uses += 1; self.out[id(b)] = b
        return b
    def release(self, b):
        if self.out.pop(id(b), None) is not b: raise PoolError('foreign')
        if self.reset: self.reset(b)
        self.idle.append(b)
    class Lease:
        def __init__(self, pool): self.pool = pool
        def __enter__(self): self.item = self.pool.acquire(); return self.item
        def __exit__(self, t, v, tb): self.pool.release(self.item); return t is not None and issubclass(t, StopIteration)
    def lease(self): return self.Lease(self)
    def __bool__(self): return not self.out
    def __len__(self): return len(self.idle) + len(self.out)

def nested(pool, xs, depth=0):
    if not xs: return []
    with pool.lease() as b:
        b.t[: len(xs[0])] += xs[0]
        if xs[0].sum() == 0: raise StopIteration(depth)
        rest = nested(pool, xs[1:], depth + 1)
        return [(b.t * (depth + 1)).clone(), *rest]
    return ['stopped']

def program(xs, cap, n):
    pool = Pool(lambda: Buf(n), cap, reset=lambda b: b.t.zero_())
    res = []
    for chunk in (xs, xs[:2], xs[::-1]):
        try: res.append(nested(pool, chunk))
        except PoolError as e: res.append(str(e)); print('pool', e)
        except RuntimeError as e: res.append('shape')
    try: pool.release(Buf(1))
    except PoolError as e: res.append(e.args)
    return res, pool.waiters, len(pool), bool(pool), list(pool.idle), Buf.made, [b.t.sum() for b in pool.idle], Pool.Lease.__qualname__

CALLS = ["([torch.ones(2), torch.arange(3.), torch.ones(1)], 3, 3)", "([torch.ones(1), torch.ones(2), torch.ones(1)], 2, 2)", "([torch.zeros(2)], 1, 4)", "([], 0, 1)", "([torch.ones(5), torch.ones(1)], 4, 2)"]
