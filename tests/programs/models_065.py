import torch
class Pool:
    def __init__(self, make, cap): self.make, self.cap, self.free, self.used, self.made = make, cap, [], {}, 0
    def acquire(self):
        if self.free: b = self.free.pop()
        elif self.made < self.cap: b = self.make(); self.made += 1
        else: raise MemoryError(f'pool of {self.cap} exhausted')
        self.used[id(b)] = b
        return b
    def release(self, b):
        if self.used.pop(id(b), None) is None: raise ValueError('foreign buffer')
        self.free.append(b.zero_())
    def lease(self): return Lease(self)
class Lease:
    def __init__(self, p): self.p = p
    def __enter__(self): self.b = self.p.acquire(); return self.b
    def __exit__(self, t, v, tb): self.p.release(self.b); return t is not None and issubclass(t, FloatingPointError)
def stage_scale(src, k):
    for x in src: yield x * k
def stage_window(src, n):
    buf = []
    for x in src:
        buf.append(x)
        if len(buf) == n: yield torch.stack(buf); buf.clear()
    if buf: yield torch.stack(buf)
def stage_check(src, pool):
    got = 0
    try:
        for w in src:
            with pool.lease() as b:
                b[:len(w)] += w.mean(-1) if w.ndim > 1 else w
                if b.isnan().any(): raise FloatingPointError
                got += 1
                yield b.clone(), b.sum().item()
    finally: print('closed after', got)
def program(xs, k, n, cap, take):
    pool = Pool(lambda: torch.zeros(n), cap)
    pipe = stage_check(stage_window(stage_scale(xs, k), n), pool); out = []
    try:
        for i, r in enumerate(pipe):
            out.append(r)
            if i + 1 == take: break
    except MemoryError as e: out.append(str(e))
    pipe.close()
    try: pool.release(torch.zeros(n))
    except ValueError as e: err = e.args
    return out, pool.made, len(pool.free), len(pool.used), err, next(pipe, 'end'), pipe.gi_frame
CALLS = ["(torch.arange(10.).reshape(5,2), 2., 2, 1, None)", "(torch.ones(4,1), 1, 3, 0, 1)", "([torch.tensor(1.), torch.tensor(float('nan')), torch.tensor(2.)], 1., 1, 2, None)", "(torch.ones(6,1), torch.tensor(3), 2, 1, 2)", "([], 1, 1, 1, None)"]
