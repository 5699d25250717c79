import torch
from torch import nn
from functools import cached_property, lru_cache

@lru_cache(maxsize=4)
def positions(n, d):
    print('building', n, d)
    pos = torch.arange(n, dtype=torch.float)[:, None]
    freq = torch.exp(-torch.arange(0, d, 2).float() / d)
    return torch.cat([(pos * freq).sin(), (pos * freq).cos()], -1)

class Encoder(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.d = d
        self.emb = nn.Embedding(10, d, padding_idx=0)
    @cached_property
    def scale(self):
        print('scale')
        return self.emb.weight.norm().item()
    def forward(self, ids):
        mask = ids != 0
        h = self.emb(ids) / self.scale + positions(ids.shape[-1], self.d)
        if not mask.all():
            h = h.masked_fill(~mask.unsqueeze(-1), 0.)
        return h.sum(-2) / mask.sum(-1, keepdim=True).clamp(min=1)

def program(batches, d=4):
    torch.manual_seed(0)
    positions.cache_clear()
    enc = Encoder(d)
    outs = [enc(b) for b in batches]
    info = positions.cache_info()
    return outs, info, 'scale' in vars(enc), info.hits + info.misses

CALLS = ["([torch.tensor([[1,2,0]]), torch.tensor([[3,4,5]])],)", "([torch.tensor([[1,2,0]]), torch.tensor([[3,4,5]])], 6)",
  "([torch.tensor([0,0])],)", "([],)", "([torch.tensor([11])],)"]
