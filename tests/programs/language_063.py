import torch
import random

class Sampler:
    """iterator protocol with state, __next__ and restart"""
    def __init__(self, n, seed, drop_last=False, bs=2):
        self.n, self.seed, self.drop_last, self.bs, self.epoch = n, seed, drop_last, bs, 0
    def __iter__(self):
        rng = random.Random(self.seed + self.epoch)
        order = list(range(self.n))
        rng.shuffle(order)
        self.it = iter(order)
        self.epoch += 1
        return self
    def __next__(self):
        b = []
        for i in self.it:
            b.append(i)
            if len(b) == self.bs: return b
        if b and not self.drop_last: return b
        raise StopIteration
    def __len__(self): return self.n // self.bs if self.drop_last else -(-self.n // self.bs)

class SeqData:
    """old protocol: only __getitem__"""
    def __init__(self, t): self.t, self.reads = t, 0
    def __getitem__(self, i):
        self.reads += 1
        if i >= len(self.t): raise IndexError(i)
        return self.t[i]

class Prefetch:
    def __init__(self, it, depth=2):
        self.it, self.buf, self.depth = iter(it), [], depth
    def __iter__(self):
        sentinel = object()
        while True:
            while len(self.buf) < self.depth and (v := next(self.it, sentinel)) is not sentinel:
                self.buf.append(v)
            if not self.buf: return
            yield self.buf.pop(0)

def program(t, seed, bs, drop):
    d = SeqData(t)
    s = Sampler(len(t), seed, drop, bs)
    epochs = []
    for e in range(2):
        tot = 0
        for i, idx in enumerate(Prefetch(s)):
            tot = tot + t[idx].sum() * (i + 1)
        else:
            print(f'epoch {s.epoch} of {len(s)}')
        epochs.append(tot)
    every = [v * 2 for v in d]
    *init, last = d if len(t) else [None]
    nxt = iter(lambda it=iter(range(5)): next(it), 3)
    has = (t[0] if len(t) else None) is d[0] if len(t) else None
    zipped = dict(zip(s, d))if False else [k for k, _ in zip(s, range(1))]
    return epochs, every, d.reads, len(init), list(nxt), has, zipped, s.epoch, 3 in SeqData([1, 2, 3]), max(SeqData([2, 5]), default=0), list(reversed(range(len(s)))), iter(s) is s

CALLS = ["(torch.arange(5.), 0, 2, False)", "(torch.arange(5.), 1, 2, True)", "(torch.ones(0), 0, 3, False)", "(torch.ones(2, 2), 3, 1, True)", "(torch.ones(3), 3, 7, False)"]
