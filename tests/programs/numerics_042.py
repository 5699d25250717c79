import torch
import re
from collections import Counter, OrderedDict

class Vocab:
    PAD, UNK = '<pad>', '<unk>'
    def __init__(self, counter, min_freq=1):
        items = sorted(counter.items(), key=lambda kv: (-kv[1], kv[0]))
        self.itos = [self.PAD, self.UNK] + [w for w, c in items if c >= min_freq]
        self.stoi = {w: i for i, w in enumerate(self.itos)}
    def __getitem__(self, w): return self.stoi.get(w, 1)
    def __len__(self): return len(self.itos)
    def encode(self, words): return torch.tensor([self[w] for w in words], dtype=torch.long)
    def decode(self, ids): return ' '.join(self.itos[i] for i in ids if i)

TOKEN = re.compile(r"\w+|[^\w\s]")

def collate(seqs):
    n = max(map(len, seqs), default=0)
    out = torch.zeros(len(seqs), n, dtype=torch.long)
    for row, s in zip(out, seqs):
        row[:len(s)] = s
    return out, torch.tensor([len(s) for s in seqs])

def program(texts, min_freq=1):
    docs = [TOKEN.findall(t.lower()) for t in texts]
    df = Counter(w for d in docs for w in set(d))
    vocab = Vocab(Counter(w for d in docs for w in d), min_freq)
    batch, lens = collate([vocab.encode(d) for d in docs])
    tf = torch.zeros(len(docs), len(vocab)).scatter_add_(1, batch, torch.ones_like(batch, dtype=torch.float))
    tf[:, 0] = 0
    idf = torch.tensor([len(docs) / (1 + df[w]) for w in vocab.itos]).log()
    sim = tf * idf
    sim = sim @ sim.T
    if (batch == 1).any():
        print('unk', (batch == 1).sum().item())
    return batch, lens, sim, [vocab.decode(r) for r in batch.tolist()], df.most_common(1), len(vocab)

CALLS = ["(['The cat sat.', 'The dog!'],)", "(['The cat sat.', 'The dog!'], 2)", "(['', 'a'],)", "([],)"]
