import torch

class SegTree:
    def __init__(self, n, op=min, unit=float('inf')):
        self.n = 1
        while self.n < n:
            self.n <<= 1
        self.op, self.unit = op, unit
        self.t = [unit] * (2 * self.n)
    def __setitem__(self, i, v):
        i += self.n
        self.t[i] = v
        while (i := i >> 1):
            self.t[i] = self.op(self.t[2 * i], self.t[2 * i + 1])
    def __getitem__(self, i):
        if isinstance(i, slice):
            lo, hi, step = i.indices(self.n)
            assert step == 1, step
            return self.query(lo, hi)
        return self.t[i + self.n]
    def query(self, lo, hi):
        res = self.unit
        lo += self.n; hi += self.n
        while lo < hi:
            if lo & 1: res = self.op(res, self.t[lo]); lo += 1
            if hi & 1: hi -= 1; res = self.op(res, self.t[hi])
            lo >>= 1; hi >>= 1
        return res

class PrioritizedBuffer:
    def __init__(self, cap, alpha=0.6):
        self.sums, self.mins = SegTree(cap, lambda a, b: a + b, 0.0), SegTree(cap)
        self.alpha, self.i, self.cap, self.store = alpha, 0, cap, [None] * cap
    def add(self, x, p):
        k = self.i % self.cap
        self.store[k] = x
        self.sums[k] = self.mins[k] = p ** self.alpha
        self.i += 1
    def find(self, mass):
        i = 1
        while i < self.sums.n:
            i *= 2
            if self.sums.t[i] <= mass:
                mass -= self.sums.t[i]
                i += 1
        return i - self.sums.n

def program(td, cap, draws):
    b = PrioritizedBuffer(cap)
    for i, e in enumerate(td):
        b.add(e * 2, e.abs().item() + 0.1)
    total = b.sums[:]
    idx = []
    for u in draws:
        k = b.find(u * total)
        if b.store[k:k + 1] in ([], [None]):
            print('hole', k)
            continue
        idx.append(k)
    w = torch.tensor([(b.sums[k] / total * min(b.i, cap)) ** -0.4 for k in idx])
    if len(w): w = w / w.max()
    try:
        b.sums[::2]
    except AssertionError as e:
        err = e.args
    return [b.store[k] for k in idx], w, round(total, 4), round(b.mins[:cap], 4), err, b.sums[0:0]

CALLS = ["(torch.tensor([1., -2, 3]), 4, [0.0, 0.5, 0.99])", "(torch.arange(5.), 2, [0.1, 0.9])", "(torch.zeros(0), 2, [0.5])", "(torch.ones(1), 1, [0.2])", "(torch.ones(3), 8, [1.0])"]
