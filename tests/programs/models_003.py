import torch, re, string, math
from collections import Counter, defaultdict
class Vocab(dict):
    PAD = '<pad>'
    def __init__(self, words=()):
        super().__init__({self.PAD: 0})
        self.frozen = False
        for w in words: self[w]
    def __missing__(self, key):
        if self.frozen:
            return self.setdefault('<unk>', 1) if '<unk>' in self else 0
        v = self[key] = len(self)
        return v

TOKEN = re.compile(r"[A-Za-z]+(?:'[a-z]+)?|\d+|[^\w\s]")
def ngrams(toks, n):
    return zip(*(toks[i:] for i in range(n)))

def tfidf(docs, vocab):
    tf = torch.zeros(len(docs), len(vocab) + 50)
    df = Counter()
    for i, d in enumerate(docs):
        c = Counter(d)
        for w, k in c.items():
            tf[i, vocab[w]] = 1 + math.log(k)
        df.update(c.keys())
    tf = tf[:, :len(vocab)]
    idf = torch.ones(len(vocab))
    for w, k in df.most_common():
        idf[vocab[w]] = math.log((1 + len(docs)) / (1 + k)) + 1
    out = tf * idf
    return out / out.norm(dim=1, keepdim=True).clamp_min(1e-8)

def program(texts, n):
    vocab = Vocab()
    table = str.maketrans('', '', string.digits)
    docs = []
    for t in texts:
        toks = [m.group().lower() for m in TOKEN.finditer(t.translate(table))]
        docs.append([' '.join(g) for g in ngrams(toks, n)])
    m = tfidf(docs, vocab)
    sim = m @ m.T
    if len(texts) > 1 and sim.fill_diagonal_(-1).max() > 0.1:
        best = divmod(sim.argmax().item(), len(texts))
        print(f'closest {best!r:>10}|{sim.max().item():.3f}')
    else:
        best = ()
    vocab.frozen = True
    return m, sim, best, dict(vocab), vocab['nothing'], [(k, v) for k, v in vocab.items() if v % 2]

CALLS = ["(['the cat sat', 'the cat ran!', 'dogs bark'], 1)", "([\"it's 5 o'clock\", \"it's late\"], 2)", "([''], 1)", "(['a a a a', 'b a'], 1)", "([], 2)"]
