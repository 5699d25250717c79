import torch
from collections import Counter, defaultdict

class BPE:
    def __init__(self, merges=None):
        self.merges = dict(merges or {})
        self.vocab = {i: bytes([i]) for i in range(256)}
        self._cache = {}

    @staticmethod
    def stats(ids):
        counts = {}
        for pair in zip(ids, ids[1:]):
            counts[pair] = counts.get(pair, 0) + 1
        return counts

    @staticmethod
    def merge(ids, pair, idx):
        out, i = [], 0
        while i < len(ids):
            if i < len(ids) - 1 and (ids[i], ids[i + 1]) == pair:
                out.append(idx); i += 2
            else:
                out.append(ids[i]); i += 1
        return out

    def train(self, text, n):
        ids = list(text.encode('utf-8'))
        for k in range(n):
            stats = self.stats(ids)
            if not stats or max(stats.values()) < 2:
                break
            pair = max(stats, key=lambda p: (stats[p], p))
            idx = 256 + k
            ids = self.merge(ids, pair, idx)
            self.merges[pair] = idx
            self.vocab[idx] = self.vocab[pair[0]] + self.vocab[pair[1]]
        return ids

    def decode(self, ids):
        return b''.join(self.vocab[i] for i in ids).decode('utf-8', errors='replace')

def program(text, n, emb):
    tok = BPE()
    ids = tok.train(text, n)
    t = torch.tensor(ids, dtype=torch.long)
    hist = torch.bincount(t) if len(t) else torch.zeros(1, dtype=torch.long)
    x = emb[t % emb.shape[0]]
    mean = x.sum(0) / max(len(ids), 1)
    if mean.sum() > 0:
        print('positive', len(ids))
        mean = mean * 2
    else:
        mean = mean - 1
    back = tok.decode(t.tolist())
    assert back == text
    return ids, tok.merges, mean, hist.max().item(), {v: k for k, v in tok.merges.items()}

CALLS = ["('aaabdaaabac', 3, torch.arange(12.).reshape(4,3))", "('héllo hello', 5, torch.linspace(-3,-1,10).reshape(5,2))",
 "('', 3, torch.ones(2,2))", "('the cat the mat', 2, torch.ones(3,4))", "('aaabdaaabac', 3, torch.arange(12.).reshape(4,3))"]
