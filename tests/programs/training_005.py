import torch, math
from dataclasses import dataclass, field
from typing import Optional

@dataclass
class KVCache:
    max_len: int
    k: Optional[torch.Tensor] = None
    v: Optional[torch.Tensor] = None
    pos: int = 0
    evicted: list = field(default_factory=list)

    def append(self, k, v):
        if self.k is None:
            self.k, self.v = k, v
        else:
            self.k = torch.cat([self.k, k], dim=-2)
            self.v = torch.cat([self.v, v], dim=-2)
        self.pos += k.shape[-2]
        over = self.k.shape[-2] - self.max_len
        if over > 0:
            self.evicted.append(over)
            self.k, self.v = self.k[..., over:, :], self.v[..., over:, :]
        return self.k, self.v

    def __len__(self):
        return 0 if self.k is None else self.k.size(-2)

def rotary(x, start):
    t, d = x.shape[-2], x.shape[-1]
    inv = 1.0 / (10000 ** (torch.arange(0, d, 2).float() / d))
    ang = torch.outer(torch.arange(start, start + t).float(), inv)
    c, s = ang.cos(), ang.sin()
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)

def program(x, chunks, max_len):
    cache = KVCache(max_len)
    outs = []
    i = 0
    for n in chunks:
        part = x[:, i:i + n]
        i += n
        if not part.shape[1]:
            print('empty chunk at', i); continue
        q = rotary(part, cache.pos)
        k, v = cache.append(rotary(part, cache.pos), part * 2)
        w = q @ k.mT / math.sqrt(x.shape[-1])
        qi = torch.arange(cache.pos - part.shape[1], cache.pos)[:, None]
        ki = torch.arange(cache.pos - len(cache), cache.pos)[None]
        w = w.masked_fill(ki > qi, float('-inf'))
        outs.append(w.softmax(-1) @ v)
    return outs, len(cache), bool(cache.k is None), cache, cache == KVCache(max_len) if cache.k is None else None

CALLS = ["(torch.arange(24.).reshape(1,6,4)/10, [4,1,1], 8)", "(torch.arange(24.).reshape(1,6,4)/10, [1]*6, 3)", "(torch.ones(2,3,2), [2,2], 5)",
 "(torch.ones(1,2,4), [], 2)", "(torch.ones(1,4,3), [2,2], 2)", "(torch.ones(1,2,4), [0,2,5], 2)"]
