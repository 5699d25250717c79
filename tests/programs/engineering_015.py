import torch
from functools import lru_cache
from collections import OrderedDict

class LRU:
    def __init__(self, cap):
        self.cap, self.data = cap, OrderedDict()
        self.hits = self.misses = 0
    def get(self, key, make):
        try:
            self.data.move_to_end(key)
            self.hits += 1
        except KeyError:
            self.misses += 1
            self.data[key] = make()
            if len(self.data) > self.cap:
                old, _ = self.data.popitem(last=False)
                print('evict', old)
        return self.data[key]

@lru_cache(maxsize=None)
def positional(n, dim):
    pos = torch.arange(n).unsqueeze(1)
    return torch.cat([(pos / 10 ** (2 * i / dim)).sin() for i in range(dim)], 1)

def prefix_score(tokens, x):
    pe = positional(len(tokens), x.shape[-1])
    return (x[torch.tensor(tokens)] * pe).sum()

def program(x, queries, cap):
    cache = LRU(cap)
    totals = []
    for q in queries:
        key = tuple(q)
        score = cache.get(key, lambda: prefix_score(key, x))
        if score > 1:
            score = cache.get(key[:1], lambda: prefix_score(key[:1], x)) + score
        elif score.isnan():
            break
        totals.append(score)
    best = max(range(len(totals)), key=lambda i: totals[i].item()) if totals else None
    return torch.stack(totals) if totals else None, best, cache.hits, cache.misses, list(cache.data), positional.cache_info().maxsize

CALLS = ["(torch.ones(4,2), [[1,2],[3],[1,2],[0,1,2]], 2)", "(torch.arange(6.).view(3,2), [[2,2,2],[2],[1]], 1)", "(torch.ones(2,3), [], 4)", "(torch.full((2,1), float('nan')), [[0]], 4)"]
