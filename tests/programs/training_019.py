import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence, PackedSequence
from torch import nn

class GRUCell(nn.Module):
    def __init__(self, i, h):
        super().__init__()
        self.x = nn.Linear(i, 3 * h); self.h = nn.Linear(h, 3 * h, bias=False)
        for p in self.parameters(): nn.init.constant_(p, 0.1)
    def forward(self, x, h):
        r1, z1, n1 = self.x(x).chunk(3, -1)
        r2, z2, n2 = self.h(h).chunk(3, -1)
        r, z = torch.sigmoid(r1 + r2), torch.sigmoid(z1 + z2)
        return torch.lerp(torch.tanh(n1 + r * n2), h, z)

def over_packed(cell, packed, hidden):
    assert isinstance(packed, PackedSequence)
    data, sizes, *_ = packed
    h = data.new_zeros(int(sizes[0]), hidden)
    finals, pos, outs = [], 0, []
    for bs in sizes.tolist():
        if bs < len(h):
            finals.append(h[bs:]); h = h[:bs]
        h = cell(data[pos:pos + bs], h)
        outs.append(h); pos += bs
    finals.append(h)
    return packed._replace(data=torch.cat(outs)), torch.cat(finals[::-1])

def program(seqs, hidden):
    lens = [len(s) for s in seqs]
    x = pad_sequence(seqs, batch_first=True, padding_value=-1)
    print(tuple(x.shape), lens)
    cell = GRUCell(x.shape[-1], hidden)
    packed = pack_padded_sequence(x, lens, batch_first=True, enforce_sorted=False)
    out, h = over_packed(cell, packed, hidden)
    y, ylens = pad_packed_sequence(out, batch_first=True)
    mask = torch.arange(y.shape[1])[None] < ylens[:, None]
    last = y[torch.arange(len(lens)), ylens - 1]
    return y.detach(), ylens, mask.sum().item() == sum(lens), torch.allclose(last, h[packed.unsorted_indices]), h.detach(), type(out).__name__

CALLS = ["([torch.ones(3,2), torch.ones(1,2)], 2)", "([torch.ones(1,2), torch.arange(8.).reshape(4,2), torch.ones(2,2)], 3)", "([torch.ones(1,1)], 1)", "([torch.ones(0,2), torch.ones(1,2)], 2)", "([], 2)"]
