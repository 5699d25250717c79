import torch
from itertools import chain

class Ring:
    def __init__(self, n): self.buf = torch.zeros(n); self.head = 0; self.full = False
    def push(self, v):
        self.buf[self.head] = v
        self.head = (self.head + 1) % len(self.buf)
        self.full |= self.head == 0
    @property
    def view(self): return self.buf if self.full else self.buf[:self.head]
    def __len__(self): return len(self.view)
    def __getitem__(self, i):
        if isinstance(i, slice): return torch.stack([self[j] for j in range(*i.indices(len(self)))])
        if i < 0: i += len(self)
        if not 0 <= i < len(self): raise IndexError(i)
        return self.buf[(self.head + i) % len(self.buf)] if self.full else self.buf[i]

def zscore(r):
    v = r.view
    return (v[-1] - v.mean()) / v.std() if len(v) > 1 else torch.tensor(0.)

def program(xs, n):
    r, alarms, views = Ring(n), [], []
    for i, x in enumerate(chain(xs, [0.0])):
        r.push(x)
        if abs(z := zscore(r)) > 1.0:
            alarms.append((i, round(z.item(), 3)))
            views.append(r.view)
    if alarms: print('alarms', len(alarms))
    return alarms, views, r.view.data_ptr() == r.buf.data_ptr(), list(r), r[-1], r[::2], [float(v) for v in reversed(r)], r.full, type(r.full).__name__

CALLS = ["(torch.tensor([1.,2.,9.,2.]), 3)", "(torch.tensor([1.,2.,9.,2.]), 3)", "([1, 2.5], 8)", "(torch.ones(2), 1)", "([], 2)", "([1], 0)"]
