import torch
import random

class PrioritizedBuffer:
    def __init__(self, cap, dim, alpha=0.6):
        self.cap, self.alpha = cap, alpha
        self.data = torch.zeros(cap, dim)
        self.prio = torch.zeros(cap)
        self.ptr = self.size = 0
    def __len__(self):
        return self.size
    def __iadd__(self, row):
        self.data[self.ptr] = row
        self.prio[self.ptr] = self.prio.max() if self.size else 1.0
        self.ptr = (self.ptr + 1) % self.cap
        self.size = min(self.size + 1, self.cap)
        return self
    def sample(self, n, rng):
        p = self.prio[:len(self)] ** self.alpha
        p /= p.sum()
        idx = rng.choices(range(len(self)), weights=p.tolist(), k=n)
        w = (len(self) * p[idx]).pow(-0.4)
        return idx, self.data[idx], w / w.max()
    def __setitem__(self, idx, err):
        for i, e in zip(idx, err):
            self.prio[i] = e.abs() + 1e-3

def program(rows, cap, n):
    rng = random.Random(0)
    buf = PrioritizedBuffer(cap, rows.shape[1])
    picked, weights = [], []
    for row in rows:
        buf += row
        if len(buf) < 2:
            continue
        idx, batch, w = buf.sample(n, rng)
        err = batch.sum(1) - batch.mean()
        buf[idx] = err
        picked += idx
        weights.append(w)
    if buf.size == cap:
        print('full', buf.ptr)
    return picked, weights, buf.prio, buf.data, len(buf), rng.random()

CALLS = ["(torch.arange(8.).reshape(4,2), 3, 2)", "(torch.arange(8.).reshape(4,2), 3, 2)", "(torch.arange(8.).reshape(4,2), 6, 3)", "(torch.ones(1,2), 2, 1)", "(torch.ones(3,2), 0, 1)"]
