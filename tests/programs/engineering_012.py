import torch
import torch.nn as nn

class KVCache:
    def __init__(self, size, dim):
        self.k = torch.zeros(size, dim)
        self.v = torch.zeros(size, dim)
        self.pos = 0
    def append(self, k, v):
        if self.pos >= len(self.k):
            self.k = torch.cat([self.k, torch.zeros_like(self.k)])
            self.v = torch.cat([self.v, torch.zeros_like(self.v)])
            print('grow', len(self.k))
        self.k[self.pos] = k
        self.v[self.pos] = v
        self.pos += 1
        return self
    def view(self):
        return self.k[:self.pos], self.v[:self.pos]
    def __len__(self):
        return self.pos
    def __bool__(self):
        return True

class Decoder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        torch.manual_seed(3)
        self.emb = nn.Embedding(vocab, dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.head = nn.Linear(dim, vocab)
        self.head.weight = self.emb.weight
    def forward(self, tok, cache=None):
        x = self.emb(torch.tensor(tok))
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        cache = cache or KVCache(2, x.numel())
        keys, values = cache.append(k, v).view()
        att = (keys @ q / q.numel() ** .5).softmax(0)
        return self.head(x + att @ values), cache

@torch.no_grad()
def program(vocab, prompt, steps):
    model = Decoder(vocab, 4)
    cache, out = None, []
    for tok in prompt:
        logits, cache = model(tok, cache)
    while len(out) < steps:
        tok = logits.argmax().item()
        out.append(tok)
        if out.count(tok) > 2:
            logits[tok] = float('-inf')
            out[-1] = tok = logits.argmax().item()
        logits, cache = model(tok, cache)
    return out, logits, cache.k, len(cache), cache.v.is_contiguous(), model.head.weight is model.emb.weight

CALLS = ["(5, [1, 2], 4)", "(3, [0], 1)", "(7, [6, 5, 4, 3, 2, 1, 0], 3)", "(5, [4, 4], 6)"]
