import torch
from torch import nn

class Router(nn.Module):
    """early exit transformer with per-token halting"""
    def __init__(self, d, layers, thr):
        super().__init__()
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(d, 1, d * 2, dropout=0., batch_first=True, norm_first=bool(i % 2)) for i in range(layers))
        self.halt = nn.ModuleList([nn.Linear(d, 1) for _ in self.blocks])
        self.thr = thr
        self.exits = []
    def forward(self, x, pad=None):
        alive = torch.ones(x.shape[:2], dtype=torch.bool) if pad is None else ~pad
        budget = torch.zeros(x.shape[:2])
        for i, (b, h) in enumerate(zip(self.blocks, self.halt)):
            if not alive.any():
                print('all halted before', i); break
            y = b(x, src_key_padding_mask=pad)
            p = h(y).sigmoid().squeeze(-1)
            budget = budget + p * alive
            x = torch.where(alive[..., None], y, x)
            done = alive & (budget > self.thr)
            self.exits += [(i, *idx) for idx in done.nonzero().tolist()]
            alive = alive & ~done
        else:
            i = len(self.blocks)
        return x, budget, i

def program(x, layers, thr, pad):
    torch.manual_seed(4)
    m = Router(x.shape[-1], layers, thr)
    m.train()
    out, budget, n = m(x, pad)
    ponder = budget.sum() / max(budget.numel(), 1)
    (out.pow(2).mean() + ponder).backward()
    unused = [n for n, p in m.named_parameters() if p.grad is None]
    m.blocks.insert(0, nn.Identity()) if layers and pad is None else None
    try: extra = m(x, pad)[2]
    except TypeError as e: extra = str(e)[-60:]
    if layers > 1: m.blocks[-1] = m.blocks[0]
    sl = m.blocks[::2]
    m.halt += [nn.Identity()]
    mha = nn.MultiheadAttention(x.shape[-1], 1, batch_first=True)
    a, w = mha(x, x, x, need_weights=True, average_attn_weights=False)
    a2, none = mha(x, x, x, need_weights=False)
    return out.detach(), budget.detach(), n, m.exits, len(unused), extra, len(sl), type(sl).__name__, len(m.halt), [type(b).__name__ for b in m.blocks], w.shape, none, torch.allclose(a, a2, atol=1e-5), m.blocks[0] in m.blocks

CALLS = ["(torch.linspace(-1,1,12).reshape(1,3,4), 2, .9, None)", "(torch.linspace(-1,1,8).reshape(1,2,4), 3, .1, None)", "(torch.linspace(-1,1,8).reshape(2,2,2), 2, .6, torch.tensor([[False,True],[False,False]]))", "(torch.ones(1,2,2), 0, .5, None)"]
