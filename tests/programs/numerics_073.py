import torch
from functools import lru_cache

def knapsack(weights, values, cap):
    best = torch.zeros(cap + 1, dtype=values.dtype)
    take = torch.zeros(len(weights), cap + 1, dtype=torch.bool)
    for i, (w, v) in enumerate(zip(weights, values)):
        if w > cap: continue
        cand = best[:cap + 1 - w] + v
        better = cand > best[w:]
        take[i, w:] = better
        best[w:] = torch.where(better, cand, best[w:])
    c, chosen = cap, []
    for i in range(len(weights) - 1, -1, -1):
        if take[i, c]:
            chosen.append(i)
            c -= weights[i]
    return best[-1], chosen[::-1], c

def lis(x):
    @lru_cache(None)
    def go(i):
        return 1 + max((go(j) for j in range(i) if x[j] < x[i]), default=0)
    return max(map(go, range(len(x))), default=0), go.cache_info().hits

def lcs(a, b):
    t = torch.zeros(len(a) + 1, len(b) + 1, dtype=torch.int)
    for i in range(len(a)):
        for j in range(len(b)):
            t[i+1, j+1] = t[i, j] + 1 if a[i] == b[j] else torch.maximum(t[i, j+1], t[i+1, j])
    return t[-1, -1].item()

def program(weights, values, cap):
    best, chosen, left = knapsack(weights, values, cap)
    n, hits = lis(values)
    if left: print('left over', left)
    return best, chosen, left, n, hits, lcs(weights.tolist() if isinstance(weights, torch.Tensor) else weights, values.tolist())

CALLS = ["([1,3,4], torch.tensor([15.,20.,30.]), 4)", "([1,3,4], torch.tensor([15.,20.,30.]), 6)", "(torch.tensor([1,2]), torch.tensor([1,2]), 2)", "([9], torch.ones(1), 2)", "([], torch.ones(0), 0)"]
