import torch
from torch.utils.data import Dataset
from collections import namedtuple, OrderedDict
Batch = namedtuple('Batch', 'tokens mask lengths', defaults=(None,))
SEEN = []

class Pairs(Dataset):
    def __init__(self, seqs, transform=None):
        self.seqs = list(seqs)
        self.transform = transform
        self.hits = 0
    def __len__(self):
        return len(self.seqs)
    def __getitem__(self, i):
        self.hits += 1
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        if i >= len(self) or i < -len(self):
            raise IndexError(f'no item {i}')
        s = torch.as_tensor(self.seqs[i], dtype=torch.float32)
        return self.transform(s) if self.transform else s

def collate(items, *, pad=0.0):
    n = max((len(x) for x in items), default=0)
    out = torch.full((len(items), n), pad)
    mask = torch.zeros(len(items), n, dtype=torch.bool)
    for row, m, x in zip(out, mask, items):
        row[:len(x)] = x
        m[:len(x)] = True
    return Batch(out, mask, torch.tensor([len(x) for x in items]))

def batches(ds, size, drop_last=False):
    order = sorted(range(len(ds)), key=lambda i: (-len(ds.seqs[i]), i))
    for k in range(0, len(order), size):
        chunk = order[k:k + size]
        if drop_last and len(chunk) < size:
            return 'dropped'
        yield chunk, collate([ds[i] for i in chunk], pad=-1.0)
    return 'complete'

def driver(ds, size, drop):
    how = yield from batches(ds, size, drop)
    SEEN.append(how)
    print('finished', how)

def program(seqs, size, drop):
    ds = Pairs(seqs, transform=lambda t: t * 2 + 1)
    res = OrderedDict()
    for idx, b in driver(ds, size, drop):
        mean = (b.tokens * b.mask).sum(1) / b.lengths.clamp(min=1)
        res[tuple(idx)] = b._replace(lengths=b.lengths + 1), mean
    try:
        ds[len(ds)]
    except IndexError as e:
        err = str(e), e.args
    tail = ds[-2:]
    return res, err, tail, ds.hits, list(SEEN), [x.shape for x in ds]

CALLS = ["([[1,2],[3],[4,5,6]], 2, False)", "([[1,2],[3],[4,5,6]], 2, True)", "([], 3, False)", "([[], [1.5]], 1, True)", "([[7]]*5, 2, False)"]
