import torch
from typing import NamedTuple, Optional
from dataclasses import dataclass, field
import copy

class KV(NamedTuple):
    k: torch.Tensor
    v: torch.Tensor
    def append(self, k, v):
        return self._replace(k=torch.cat([self.k, k], -2), v=torch.cat([self.v, v], -2))
    @property
    def length(self): return self.k.shape[-2]

@dataclass
class Cache:
    layers: dict = field(default_factory=dict)
    max_len: Optional[int] = None
    evicted: int = 0
    def update(self, i, k, v):
        kv = self.layers.get(i)
        kv = KV(k, v) if kv is None else kv.append(k, v)
        if self.max_len is not None and (over := kv.length - self.max_len) > 0:
            kv = KV(*(t[..., over:, :] for t in kv))
            self.evicted += over
        self.layers[i] = kv
        return kv

class Block(torch.nn.Module):
    def __init__(self, d, i):
        super().__init__()
        g = torch.Generator().manual_seed(i)
        self.qkv = torch.nn.Parameter(torch.randn(d, 3 * d, generator=g) * 0.3)
        self.i = i
    def forward(self, x, cache):
        q, k, v = (x @ self.qkv).chunk(3, -1)
        k, v = cache.update(self.i, k, v)
        a = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** .5, -1)
        return x + a @ v

def program(d, n, steps, max_len):
    blocks = [Block(d, i) for i in range(n)]
    cache = Cache(max_len=max_len)
    x = torch.linspace(0, 1, d)[None]
    outs, snaps = [], []
    for s in range(steps):
        for b in blocks:
            x = b(x, cache)
        outs.append(x.argmax().item())
        if s == 1:
            snaps.append(copy.copy(cache))
            snaps.append(copy.deepcopy(cache))
            print('snapshot', s)
        x = x / x.norm()
    same = [s.layers is cache.layers for s in snaps]
    lens = [kv.length for kv in cache.layers.values()]
    return outs, x.detach(), lens, cache.evicted, same, [len(s.layers) and s.layers[0].length for s in snaps], cache == (snaps or [None])[0] if n == 0 else None

CALLS = ["(4, 2, 3, None)", "(4, 1, 5, 2)", "(2, 0, 3, None)", "(3, 2, 0, 1)", "(4, 2, 4, 0)"]
