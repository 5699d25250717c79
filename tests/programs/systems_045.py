import torch, math
from collections import Counter, defaultdict

class NB:
    def __init__(self, alpha=1.0): self.alpha = alpha; self.words = defaultdict(Counter); self.docs = Counter(); self._cache = None
    @staticmethod
    def tokens(s): return [w.strip('.,!?').casefold() for w in s.split()]
    def train(self, pairs):
        for text, label in pairs:
            self.docs[label] += 1; self.words[label].update(self.tokens(text))
        self._cache = None
        return self
    @property
    def table(self):
        if self._cache is None:
            vocab = sorted(set().union(*self.words.values()))
            labels = sorted(self.docs)
            M = torch.tensor([[self.words[l][w] + self.alpha for w in vocab] for l in labels], dtype=torch.float64)
            self._cache = {w: i for i, w in enumerate(vocab)}, labels, (M / M.sum(-1, keepdim=True)).log()
        return self._cache
    def logits(self, text):
        vocab, labels, M = self.table
        prior = torch.tensor([math.log(self.docs[l] / self.docs.total()) for l in labels], dtype=torch.float64)
        for w, n in Counter(self.tokens(text)).items():
            try: prior += n * M[:, vocab[w]]
            except KeyError: continue
        return prior
    def __call__(self, text): return self.table[1][self.logits(text).argmax()]

def program(pairs, tests, alpha):
    nb = NB(alpha)
    res = {}
    nb.train(pairs[:-1]); t1 = nb.table if pairs[:-1] else None
    nb.train(pairs[-1:])
    for s in tests:
        try:
            lg = nb.logits(s)
            res[s] = nb(s), torch.softmax(lg, 0)
            if torch.isinf(lg).any(): print('inf in', repr(s))
        except (IndexError, TypeError, RuntimeError) as e: res[s] = type(e).__name__
    conf = Counter((l, nb(t)) for t, l in pairs) if pairs else Counter()
    top = {l: c.most_common(2) for l, c in nb.words.items()}
    acc = sum(n for (a, b), n in conf.items() if a == b) / (conf.total() or 1)
    return res, conf, top, acc, t1 is nb.table if pairs else 0, nb.docs - Counter(spam=1), +(nb.docs & Counter(ham=5)), dict(nb.words.get('zzz', {}))

CALLS = ["([('buy now!', 'spam'), ('hello you', 'ham'), ('you win now', 'spam')], ['win', 'hello there', ''], 1.0)", "([], ['x'], 1)", "([('a a b', 'x'), ('b', 'y')], ['a b', 'a'], 0.0)", "([('only', 'one')], ['only'], .5)"]
