import torch
import string

class Cipher:
    ALPHA = string.ascii_lowercase
    def __init__(self, key): self.key = key % 26
    def __invert__(self): return Cipher(-self.key)
    def __rshift__(self, text): return self(text)
    def __call__(self, text):
        idx = torch.tensor([self.ALPHA.find(c) for c in text])
        shifted = torch.where(idx >= 0, (idx + self.key) % 26, idx)
        return ''.join(self.ALPHA[i] if i >= 0 else c for i, c in zip(shifted.tolist(), text))

def bigrams(text):
    ids = torch.tensor([ord(c) - 97 if c.isalpha() else 26 for c in text])
    m = torch.zeros(27, 27)
    m.index_put_((ids[:-1], ids[1:]), torch.tensor(1.), accumulate=True)
    return m

def generate(m, start, n, g):
    out = [start]
    for _ in range(n):
        row = m[out[-1]]
        if row.sum() == 0: break
        out.append(torch.multinomial(row, 1, generator=g).item())
    return ''.join((string.ascii_lowercase + ' ')[i] for i in out)

def program(text, key):
    c = Cipher(key)
    enc = c >> text
    dec = ~c >> enc
    m = bigrams(text)
    g = torch.Generator()
    g.manual_seed(3)
    words = [generate(m, i, 5, g) for i in m.sum(1).topk(2).indices.tolist()]
    if dec != text: print('lossy', dec)
    return enc, dec, words, m.sum(), m.nonzero()

CALLS = ["('hello there', 3)", "('hello there', 29)", "('Abc', 1)", "('', 1)", "('zz', -1)"]
