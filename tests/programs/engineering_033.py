import torch
from dataclasses import dataclass
from itertools import accumulate, zip_longest

@dataclass
class Batch:
    ids: torch.Tensor
    mask: torch.Tensor
    labels: torch.Tensor | None = None
    def __iter__(self):
        yield self.ids
        yield self.mask
        if self.labels is not None:
            yield self.labels
    def __getitem__(self, key):
        if isinstance(key, str):
            return getattr(self, key)
        return Batch(*(t[key] for t in self))
    def __len__(self): return self.ids.shape[0]

def pad(seqs, value, side='right', multiple=1):
    width = max(map(len, seqs), default=0)
    width = (width + multiple - 1) // multiple * multiple
    out = torch.full((len(seqs), width), value)
    mask = out.new_zeros(out.shape, dtype=torch.bool)
    for i, s in enumerate(seqs):
        sl = slice(0, len(s)) if side == 'right' else slice(width - len(s), None)
        out[i, sl] = torch.tensor(s, dtype=out.dtype)
        mask[i, sl] = True
    return out, mask

def pack(seqs):
    flat = [t for s in seqs for t in s]
    cu = list(accumulate(map(len, seqs), initial=0))
    pos = torch.cat([torch.arange(b - a) for a, b in zip(cu, cu[1:])]) if seqs else torch.empty(0)
    return torch.tensor(flat), torch.tensor(cu, dtype=torch.int32), pos

def program(seqs, labels, side, multiple):
    b = Batch(*pad(seqs, 0, side, multiple), labels)
    flat, cu, pos = pack(seqs)
    first, *rest = b
    lengths = b['mask'].sum(-1)
    if len(b) and (lengths.max() > 2 * lengths.min()).item():
        order = lengths.argsort(descending=True, stable=True)
        b = b[order]
        print('sorted', order.tolist())
    cols = [tuple(c) for c in zip_longest(*seqs, fillvalue=None)]
    return b, flat, cu, pos, cols, len(rest), b[:1]

CALLS = ["([[1,2,3],[4]], torch.tensor([0,1]), 'right', 2)", "([[1,2],[3,4]], None, 'left', 3)", "([[],[7]], torch.ones(2), 'left', 1)", "([[5]*4,[1],[2,2]], None, 'right', 1)"]
