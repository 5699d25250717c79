import torch

class Ring:
    def __init__(self, n, like):
        self.buf = like.new_zeros(n, *like.shape)
        self.i = 0
        self.full = False
    def push(self, x):
        self.buf[self.i] = x
        self.i = (self.i + 1) % len(self.buf)
        self.full |= self.i == 0
    def __getitem__(self, k):
        n = len(self)
        if isinstance(k, slice):
            return torch.stack([self[j] for j in range(*k.indices(n))])
        if not -n <= k < n:
            raise IndexError(k)
        start = self.i if self.full else 0
        return self.buf[(start + k % n) % len(self.buf)]
    def __setitem__(self, k, v):
        self[k].copy_(v) if not isinstance(v, str) else self[k].fill_(float(v))
    def __len__(self):
        return len(self.buf) if self.full else self.i
    def __bool__(self):
        return self.full

def program(x, n, pushes):
    r = Ring(n, x)
    for p in range(pushes):
        r.push(x + p)
    if r:
        print('full', len(r))
    got = []
    for t in r:
        got.append(t.sum().item())
    try:
        r[0] = 5
        r[-1] = '7.5'
    except (IndexError, ZeroDivisionError) as e:
        print('index', e.args)
    view = r.buf.view(-1)
    view[::2].neg_()
    row = r.buf[0]
    alias = row.data_ptr() == r.buf.data_ptr()
    r.buf[:, ..., None].mul_(2)
    a = list(reversed(r)) if len(r) else []
    return r.buf, got, row, alias, r[::2] if len(r) else None, r[-2:] if len(r) > 1 else None, a, 7.5 in got

CALLS = ["(torch.ones(2), 3, 4)", "(torch.arange(4.).reshape(2,2), 2, 1)", "(torch.tensor(1.), 4, 4)", "(torch.ones(2), 3, 0)", "(torch.ones(2,dtype=torch.int64), 2, 3)", "(torch.ones(0), 2, 5)"]
