import torch
from functools import cache, lru_cache

def edit(a, b):
    @cache
    def d(i, j):
        if not i or not j: return i + j
        return min(d(i - 1, j) + 1, d(i, j - 1) + 1, d(i - 1, j - 1) + (a[i - 1] != b[j - 1]))
    v = d(len(a), len(b))
    return v, d.cache_info().currsize

def lcs(a, b):
    T = torch.zeros(len(a) + 1, len(b) + 1, dtype=torch.long)
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            T[i, j] = T[i-1, j-1] + 1 if x == y else torch.maximum(T[i-1, j], T[i, j-1])
    out, i, j = [], len(a), len(b)
    while i and j:
        if a[i-1] == b[j-1]: out.append(a[i-1]); i -= 1; j -= 1
        elif T[i-1, j] >= T[i, j-1]: i -= 1
        else: j -= 1
    return ''.join(out[::-1]), T

def knapsack(weights, values, cap):
    best = torch.zeros(cap + 1)
    for w, v in zip(weights, values):
        if w <= cap:
            cand = best[: cap + 1 - w] + v
            best = torch.cat([best[:w], torch.maximum(best[w:], cand)])
    return best

def chain_order(dims):
    memo = {}
    def go(i, j):
        if (i, j) not in memo:
            memo[i, j] = (0, f'A{i}') if i == j else min(
                (go(i, k)[0] + go(k + 1, j)[0] + dims[i] * dims[k + 1] * dims[j + 1], f'({go(i, k)[1]}{go(k + 1, j)[1]})') for k in range(i, j))
        return memo[i, j]
    return go(0, len(dims) - 2), len(memo)

@lru_cache(maxsize=4)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)

def program(a, b, weights, cap, dims):
    e = edit(a, b)
    s, T = lcs(a, b)
    try: k = knapsack(weights, torch.arange(1., len(weights) + 1), cap)
    except (RuntimeError, IndexError) as err: print(type(err).__name__); k = None
    try: c = chain_order(dims)
    except (IndexError, RecursionError, TypeError) as err: c = type(err).__name__
    mats = [torch.ones(p, q) for p, q in zip(dims, dims[1:])]
    prod = torch.linalg.multi_dot(mats) if len(mats) > 1 else None
    return e, s, T, k, c, prod, fib(len(a)), tuple(fib.cache_info()), T.diagonal().sum()

CALLS = ["('kitten', 'sitting', [1,2,3], 4, (2,3,4,1))", "('', 'abc', [], 0, (1,2))", "('abc', 'abc', [5], 3, (2,2,2,2,2))", "('ab', 'ba', [0,-1], 2, ())", "('abcd', 'xbxd', [2,2], 3, (4,1,4))"]
