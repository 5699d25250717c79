import torch
import torch.nn as nn
class Encoder(nn.Module):
    def __init__(self, d, kind):
        super().__init__(); self.kind = kind
        self.cell = {'rnn': nn.RNNCell, 'gru': nn.GRUCell, 'lstm': nn.LSTMCell}[kind](d, 3)
    def forward(self, xs, lengths):
        h = None; outs = []
        for t, x in enumerate(xs.unbind(1)):
            new = self.cell(x, h)
            alive = (t < lengths)[:, None]
            if h is None: h = tuple(torch.where(alive, n, torch.zeros_like(n)) for n in new) if isinstance(new, tuple) else new * alive
            elif isinstance(h, tuple): h = tuple(torch.where(alive, n, o) for n, o in zip(new, h))
            else: h = torch.where(alive, new, h)
            outs.append(h[0] if isinstance(h, tuple) else h)
            if not (lengths > t + 1).any(): print('all finished at', t); break
        return outs, h
def program(xs, lengths, kind, bidir):
    torch.manual_seed(0)
    try: m = Encoder(xs.shape[-1], kind)
    except KeyError as e: return f'no cell {e}'
    outs, h = m(xs, lengths)
    if bidir: o2, _ = m(torch.stack([torch.cat([x[:n].flip(0), x[n:]]) for x, n in zip(xs, lengths.tolist())]), lengths); outs = [torch.cat(p, -1) for p in zip(outs, o2)]
    y = torch.stack(outs, 1) if outs else None
    att = None if y is None else (y.mean(-1).softmax(1)[..., None] * y).sum(1)
    packed = nn.utils.rnn.pack_padded_sequence(xs, lengths.clamp(min=1), batch_first=True, enforce_sorted=False) if xs.numel() else None
    return y, h, att, packed and (packed.batch_sizes, packed.sorted_indices), len(outs), type(m.cell).__name__
CALLS = ["(torch.arange(12.).reshape(2,3,2)/12, torch.tensor([3,1]), 'gru', True)", "(torch.ones(1,4,2), torch.tensor([2]), 'lstm', False)", "(torch.ones(1,2,2), torch.tensor([0]), 'rnn', True)", "(torch.ones(1,0,2), torch.tensor([0]), 'rnn', False)", "(torch.ones(1,0,2), torch.tensor([0]), 'mamba', False)"]
