import torch
from collections import OrderedDict, Counter, ChainMap

DEFAULTS = {'lower': True, 'min_freq': 1, 'max_size': 8}
calls = []

def build(texts, **options):
    opts = ChainMap(options, DEFAULTS)
    counter = Counter()
    for text in texts:
        counter.update((text.lower() if opts['lower'] else text).split())
    items = sorted(counter.items(), key=lambda kv: (-kv[1], kv[0]))
    vocab = OrderedDict()
    for w, c in items:
        if c < opts['min_freq'] or len(vocab) >= opts['max_size']:
            break
        vocab[w] = c
    calls.append(dict(opts))
    return vocab, counter

def tfidf(texts, vocab):
    index = {w: i for i, w in enumerate(vocab)}
    counts = torch.zeros(len(texts), len(vocab))
    for r, text in enumerate(texts):
        for w in text.lower().split():
            if (c := index.get(w)) is not None:
                counts[r, c] += 1
    df = (counts > 0).sum(0)
    idf = torch.log((1 + len(texts)) / (1 + df.float())) + 1
    out = counts * idf
    norm = out.norm(dim=1, keepdim=True)
    if (norm == 0).any():
        print('empty rows', (norm == 0).sum().item())
        norm = norm.clamp(min=1e-6)
    return out / norm

def program(texts, query, options):
    vocab, counter = build(texts, **options)
    m = tfidf(texts, vocab)
    q = tfidf([query], vocab)[0]
    sims = m @ q
    order = sims.argsort(descending=True, stable=True).tolist()
    vocab.move_to_end(next(iter(vocab), None)) if vocab else None
    rest = counter - Counter(vocab)
    return m.round(decimals=4), [texts[i] for i in order], list(vocab.items()), rest, len(calls), counter.most_common(2)

CALLS = ["(['a b a', 'b c', 'c c c'], 'c b', {})", "(['A B', 'x'], 'zzz', {'lower': False})", "(['a b a', 'b c', 'c c c'], 'c b', {'min_freq': 2, 'extra': 1})", "(['', 'q'], 'q', {'max_size': 1})"]
