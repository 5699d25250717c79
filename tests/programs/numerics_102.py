import torch
from collections import Counter

def ngrams(s, n): return list(zip(*(s[i:] for i in range(n))))

class Bayes:
    def __init__(self, alpha=1.): self.alpha, self.counts, self.prior = alpha, {}, Counter()
    def fit(self, docs):
        for text, y in docs:
            self.prior[y] += 1
            self.counts.setdefault(y, Counter()).update(ngrams(text, 2))
        return self
    def logp(self, text):
        vocab = {g for c in self.counts.values() for g in c}
        rows = [[(self.counts[y][g] + self.alpha) / (self.counts[y].total() + self.alpha * len(vocab)) for g in ngrams(text, 2)] for y in sorted(self.counts)]
        prior = torch.tensor([float(self.prior[y]) for y in sorted(self.counts)])
        return (torch.tensor(rows).log().sum(-1) + prior.log()).log_softmax(0)

def program(docs, queries, alpha=1.):
    nb, out = Bayes(alpha).fit(docs), {}
    labels = sorted(nb.counts)
    for q in queries:
        lp = nb.logp(q)
        best = labels[int(lp.argmax())]
        if lp.exp().max() < .6: print('unsure', q); best = min(labels, key=lambda y: nb.prior[y])
        out[q] = best, lp
    return out, nb.prior, max(nb.counts, key=lambda y: nb.counts[y].total())

CALLS = ["([('abab', 0), ('bcbc', 1)], ['ab', 'cb'])", "([('abab', 0), ('bcbc', 1)], ['zz'])", "([('aa', 'x')], ['a'], .1)", "([('ab', 0)], ['ba'], 0.)", "([], [])"]
