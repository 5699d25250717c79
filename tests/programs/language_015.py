import torch
from collections import Counter
from functools import lru_cache, cached_property

class Corpus:
    def __init__(self, docs):
        self.docs = [d.lower().split() for d in docs]

    @cached_property
    def vocab(self):
        c = Counter(w for d in self.docs for w in d)
        return {w: i for i, (w, _) in enumerate(sorted(c.items(), key=lambda kv: (-kv[1], kv[0])))}

    @cached_property
    def tf(self):
        m = torch.zeros(len(self.docs), len(self.vocab))
        for i, d in enumerate(self.docs):
            for w, n in Counter(d).items():
                m[i, self.vocab[w]] += n
        return m

    @property
    def idf(self):
        df = (self.tf > 0).sum(0)
        return torch.log((1 + len(self.docs)) / (1 + df)) + 1

    def tfidf(self):
        m = self.tf * self.idf
        return m / m.norm(dim=1, keepdim=True).clamp_min(1e-8)

@lru_cache(maxsize=4)
def stem(w):
    for suf in ('ing', 'ed', 's'):
        if len(w) > len(suf) + 2 and w.endswith(suf):
            return w.removesuffix(suf)
    return w

def program(docs, query):
    stem.cache_clear()
    c = Corpus([' '.join(stem(w) for w in d.split()) for d in docs])
    m = c.tfidf()
    q = torch.zeros(len(c.vocab))
    unknown = Counter()
    for w in map(stem, query.split()):
        if (i := c.vocab.get(w)) is None:
            unknown[w] += 1
        else:
            q[i] += 1
    scores = m @ q
    if unknown:
        print('unknown', unknown.most_common(1))
    order = scores.argsort(descending=True, stable=True).tolist() if len(docs) else []
    return scores, order, unknown, stem.cache_info(), sorted(vars(c)), c.tf is c.tf, c.idf is c.idf, unknown - Counter({'zzz': 1}), +Counter(query)['e']

CALLS = ["(['the cats sat', 'dogs barked', 'the dog jumping'], 'dog jump')", "(['a b', 'b c c'], 'c zzz zzz')", "([], 'x')", "(['', 'one'], '')", "(['aa bb', 'bb cc'], 'bb bb')"]
