import torch
import string
from functools import partial, reduce

def normalize(s, *, strip=True):
    return s.strip() if strip else s
def lowercase(s): return s.lower()
def drop_punct(s, table=str.maketrans('', '', string.punctuation)):
    return s.translate(table)

def compose(*fns):
    return reduce(lambda f, g: lambda x: g(f(x)), fns, lambda x: x)

class HashEmbedding:
    def __init__(self, buckets, dim, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.weight = torch.randn(buckets, dim, generator=g)
        self.hits = torch.zeros(buckets, dtype=torch.int32)
    def bucket(self, ngram):
        h = 5381
        for ch in ngram:
            h = (h * 33 ^ ord(ch)) & 0xFFFFFFFF
        return h % self.weight.shape[0]
    def __call__(self, word, n=2):
        padded = f'<{word}>'
        ids = [self.bucket(padded[i:i + n]) for i in range(len(padded) - n + 1)]
        for i in ids:
            self.hits[i] += 1
        return self.weight[ids].mean(0)

def program(text, pipeline, n):
    fns = {'norm': normalize, 'lower': lowercase, 'punct': drop_punct, 'raw': partial(normalize, strip=False)}
    clean = compose(*(fns[p] for p in pipeline))(text)
    emb = HashEmbedding(7, 4)
    words = clean.split(' ')
    vecs = torch.stack([emb(w, n=n) for w in words])
    sim = torch.cosine_similarity(vecs[:1], vecs)
    near = [w for w, s in zip(words, sim.tolist()) if s > 0.5]
    if emb.hits.max() > 3:
        print('collision', emb.hits.tolist())
    return clean, vecs, near, emb.hits, sim.sum().item() > 1

CALLS = ["('  Hello, hello World! ', ['norm', 'lower', 'punct'], 2)", "('a', [], 2)", "('abc abd  xyz', ['raw', 'lower'], 3)", "('  Hello, hello World! ', ['norm', 'lower', 'punct'], 3)"]
