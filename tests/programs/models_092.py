import torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, Sampler, BatchSampler, ConcatDataset, Subset, IterableDataset
class Curriculum(Sampler):
    def __init__(self, diff): self.diff, self.epoch = diff, 0
    def __len__(self): return min(len(self.diff), 2 + self.epoch)
    def __iter__(self): self.epoch += 1; return iter(self.diff.argsort(stable=True)[:min(len(self.diff), 1 + self.epoch)].tolist())
class Stream(IterableDataset):
    def __init__(self, n): self.n = n
    def __iter__(self):
        for i in range(self.n): yield {'x': torch.full((2,), float(i)), 'id': f's{i}'}
def program(x, y, bs, n):
    ds = ConcatDataset([TensorDataset(x, y), Subset(TensorDataset(x + 10, y), range(0, len(x), 2))]) if len(x) else TensorDataset(x, y)
    diff = torch.tensor([float(d[0].sum()) for d in ds]) if len(ds) else torch.zeros(0)
    samp = Curriculum(-diff); dl = DataLoader(ds, batch_sampler=BatchSampler(samp, bs, drop_last=False)); log = []
    w = torch.zeros(x.shape[1])
    for ep in range(2):
        for xb, yb in dl:
            err = xb @ w - yb
            w = w - .01 * (err[:, None] * xb).mean(0)
            log.append((ep, len(xb), yb.tolist()))
            if err.abs().max() > 5: print('big error', ep)
    st = [(b['x'].sum(1), b['id']) for b in DataLoader(Stream(n), batch_size=2)]
    try: len(DataLoader(Stream(n)))
    except TypeError as e: err = type(e).__name__
    g = torch.Generator().manual_seed(0)
    order = [b[0].tolist() for b in DataLoader(TensorDataset(torch.arange(5)), batch_size=2, shuffle=True, generator=g, drop_last=True)]
    return w, log, st, err, order, samp.epoch, len(dl)
CALLS = ["(torch.arange(6.).reshape(3,2), torch.tensor([1.,2.,3.]), 2, 3)", "(torch.zeros(0,2), torch.zeros(0), 1, 0)", "(torch.ones(1,3), torch.ones(1), 5, 1)"]
