import torch
from math import isclose, log2

def bleu_counts(hyp, ref, n):
    from collections import Counter
    grams = lambda s: Counter(tuple(s[i:i + n]) for i in range(len(s) - n + 1))
    h, r = grams(hyp), grams(ref)
    return sum((h & r).values()), sum(h.values())

def edit(a, b):
    d = torch.zeros(len(a) + 1, len(b) + 1, dtype=torch.int32)
    d[:, 0] = torch.arange(len(a) + 1)
    d[0] = torch.arange(len(b) + 1)
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (x != y))
    return d

def ndcg(rel):
    disc = 1 / torch.log2(torch.arange(len(rel)) + 2.0)
    ideal = (rel.sort(descending=True).values * disc).sum()
    return ((rel * disc).sum() / ideal).item() if ideal else 0.0

def program(hyp, ref, rel, max_n=2):
    prec = torch.tensor([(lambda m, t: m / t if t else 0.)(*bleu_counts(hyp, ref, n)) for n in range(1, max_n + 1)])
    d = edit(hyp, ref)
    wer = d[-1, -1].item() / max(len(ref), 1)
    if not prec.all():
        print('zero precision')
        bleu = 0.0
    else:
        bleu = prec.log().mean().exp().item() * min(1.0, 2.718281828 ** (1 - len(ref) / len(hyp)))
    g = ndcg(rel)
    return prec, d, wer, bleu, g, isclose(g, 1.0), type(d[-1, -1].item()).__name__

CALLS = ["('the cat sat'.split(), 'the cat is'.split(), torch.tensor([3.,2.,0.]))", "('the cat sat'.split(), 'the cat is'.split(), torch.tensor([0.,2.,3.]))",
  "(list('kitten'), list('sit'), torch.zeros(2))", "([], ['a'], torch.tensor([]))", "([1,2,3], (1,2,3), torch.tensor([1,1]), 3)"]
