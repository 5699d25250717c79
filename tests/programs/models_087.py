import torch
from itertools import zip_longest, chain, combinations, pairwise, starmap, cycle, compress, takewhile, dropwhile
class Schedule:
    def __init__(self, *parts): self.parts = parts
    def __iter__(self): return chain.from_iterable(p() if callable(p) else p for p in self.parts)
    def __add__(self, o): return Schedule(*self.parts, *o.parts)
def warm(n, hi): return lambda: (hi * (i + 1) / n for i in range(n))
def cosine(n, hi):
    def gen():
        t = torch.arange(n) / max(1, n - 1)
        yield from (hi * .5 * (1 + torch.cos(torch.pi * t))).tolist()
        return 'spent'
    return gen
def program(n, hi, w, xs):
    s = Schedule(warm(n, hi)) + Schedule(cosine(n, hi), [0.] * 2)
    lrs = list(s); hist = []
    for lr, x in zip(s, cycle(xs)):
        g = w - x
        w = w - lr * g
        hist.append(g.abs().max())
        if hist[-1] < 1e-2: print('small'); break
    rising = list(takewhile(lambda p: p[1] >= p[0], pairwise(lrs))); rest = [*dropwhile(lambda v: v < hi, lrs)]
    z = [a if b is None else b for a, b in zip_longest(lrs, [h.item() for h in hist])]
    combos = {c: (xs[c[0]] - xs[c[1]]).norm().item() for c in combinations(range(len(xs)), 2)}
    sel = list(compress('abcdef', (h > .5 for h in hist)))
    return w, lrs, len(rising), rest, z, combos, sel, list(starmap(pow, pairwise(range(1, len(xs) + 1)))), iter(s) is iter(s)
CALLS = ["(3, .5, torch.zeros(2), torch.tensor([[1.,2.],[1.,1.]]))", "(1, 1., torch.ones(2), [torch.ones(2)])", "(0, 1., torch.ones(1), [])", "(4, torch.tensor(.1), torch.ones(1), torch.zeros(3,1))"]
