import torch
from torch import nn

class KVCache:
    def __init__(self):
        self.k = self.v = None
    def append(self, k, v):
        if self.k is None:
            self.k, self.v = k, v
        else:
            self.k = torch.cat([self.k, k], 1)
            self.v = torch.cat([self.v, v], 1)
        return self.k, self.v
    def __len__(self):
        return 0 if self.k is None else self.k.size(1)
    def crop(self, n):
        self.k, self.v = self.k[:, :n], self.v[:, :n]

class Attn(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)
    def forward(self, x, cache=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        if cache is not None:
            k, v = cache.append(k, v)
        att = (q @ k.transpose(-1, -2)) / q.shape[-1] ** 0.5
        return self.out(att.softmax(-1) @ v)

@torch.no_grad()
def generate(attn, emb, tokens, steps, limit):
    cache = KVCache()
    h = attn(emb(torch.tensor([tokens])), cache)
    while steps:
        logits = h[:, -1] @ emb.weight.T
        token = logits.argmax(-1).item()
        tokens = [*tokens, token]
        if token == 0:
            break
        h = attn(emb(torch.tensor([[token]])), cache)
        if len(cache) > limit:
            cache.crop(limit)
        steps -= 1
    return tokens, len(cache), h, cache

def program(tokens, steps, limit=6):
    torch.manual_seed(7)
    attn, emb = Attn(4), nn.Embedding(8, 4)
    if not tokens:
        raise ValueError('empty prompt')
    return generate(attn, emb, tokens, steps, limit), torch.is_grad_enabled(), bool(KVCache())

CALLS = ["([1,2,3], 4)", "([1,2,3], 6)", "([5], 8, 3)", "([], 2)", "([9], 2)"]
