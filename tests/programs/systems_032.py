import torch
from itertools import *
from collections import deque
from operator import mul
import random

def chunked(it, n):
    it = iter(it)
    while c := list(islice(it, n)): yield c
def sliding(it, n):
    it = iter(it); w = deque(islice(it, n - 1), maxlen=n)
    for x in it: w.append(x); yield tuple(w)
def roundrobin(*its):
    nexts = cycle(iter(i).__next__ for i in its); n = len(its)
    while n:
        try:
            for nx in nexts: yield nx()
        except StopIteration:
            n -= 1; nexts = cycle(islice(nexts, n))
def unique(it, key=None):
    seen = set()
    for x in it:
        k = key(x) if key else x
        if k not in seen: seen.add(k); yield x
def partition(pred, it):
    a, b = tee(it); return filterfalse(pred, a), filter(pred, b)
def first_true(it, default=None, pred=None): return next(filter(pred, it), default)
def powerset(s): s = list(s); return chain.from_iterable(combinations(s, r) for r in range(len(s) + 1))
def convolve(sig, ker):
    ker = tuple(ker)[::-1]; n = len(ker)
    w = deque([0.0], maxlen=n) * n
    for x in chain(sig, repeat(0.0, n - 1)): w.append(x); yield sum(map(mul, ker, w))

def program(t, k):
    rows = list(t)
    out = {}
    out['chunks'] = [torch.stack(c).sum(0) for c in chunked(rows, k)]
    out['slide'] = [(a - b) for a, b in sliding(rows, 2)]
    out['rr'] = list(roundrobin('ab', range(k), [t]))[:-1]
    neg, pos = partition(lambda r: r.sum() > 0, rows)
    out['neg'], out['pos'] = list(neg), len(list(pos))
    out['uniq'] = list(unique(rows, key=lambda r: tuple(r.tolist()) if r.dim() else r.item()))
    out['first'] = first_true(rows, pred=lambda r: (r > 1).any())
    out['pset'] = [sum((r.sum() for r in s), torch.zeros(())) for s in islice(powerset(rows), 6)]
    out['conv'] = list(convolve([r.float().mean() for r in rows], [1, 0.5]))
    out['acc'] = list(accumulate(rows, torch.maximum))
    out['zl'] = list(zip_longest(rows[:1], 'xy', fillvalue=0))
    print(len(out))
    out['tw'] = list(takewhile(lambda p: p[0] < k, enumerate(rows)))
    out['star'] = list(starmap(torch.add, zip(rows, rows[1:])))
    out['comp'] = list(compress(rows, cycle([1, 0])))
    out['prod'] = [x * y for x, y in product(rows[:2], (1, -1))]
    try: list(zip(rows, range(k), strict=True))
    except ValueError as e: out['strict'] = str(e)
    out['is'] = [a is b for a, b in zip(out['comp'], rows[::2])], next(count(k, .5))
    return out

CALLS = ["(torch.arange(6.).reshape(3,2)-2, 2)", "(torch.zeros(0,2), 1)", "(torch.tensor([3,1,3]), 3)", "(torch.ones(1,1), 5)", "(torch.tensor(3.), 1)"]
