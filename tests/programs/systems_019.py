import torch, bisect
from itertools import groupby, pairwise, accumulate
from operator import itemgetter, attrgetter

class Span:
    __match_args__ = ('lo', 'hi')
    def __init__(self, lo, hi):
        if lo > hi: raise ValueError(f'{lo} > {hi}')
        self.lo, self.hi = lo, hi
    def __or__(self, o):
        if self.hi < o.lo or o.hi < self.lo: return NotImplemented
        return Span(min(self.lo, o.lo), max(self.hi, o.hi))
    def __and__(self, o):
        lo, hi = max(self.lo, o.lo), min(self.hi, o.hi)
        return Span(lo, hi) if lo <= hi else None
    def __contains__(self, v): return self.lo <= v <= self.hi
    def __len__(self): return self.hi - self.lo
    def __repr__(self): return f'[{self.lo}..{self.hi}]'

def merge(spans):
    out = []
    for s in sorted(spans, key=attrgetter('lo', 'hi')):
        try: out[-1] = out[-1] | s
        except (IndexError, TypeError) as e: out.append(s)
    return out

def depth(spans, n):
    d = torch.zeros(n + 1)
    for s in spans: d[s.lo] += 1; d[s.hi] -= 1
    return d.cumsum(0)[:-1]

def program(pairs, n, mask):
    spans, bad = [], []
    for p in pairs:
        try: spans.append(Span(*p))
        except (ValueError, TypeError) as e: bad.append(str(e))
    m = merge(spans)
    def kind(s):
        match s:
            case Span(0, hi): return f'from start to {hi}'
            case Span(lo, hi) if lo == hi: return 'point'
            case Span(hi=h) if h >= n: return 'to end'
            case Span(): return 'inner'
    d = depth(spans, n)
    runs = [(k, sum(1 for _ in g)) for k, g in groupby(mask.tolist())]
    gaps = [Span(a.hi, b.lo) for a, b in pairwise(m)]
    starts = [s.lo for s in m]
    q = [bisect.bisect_right(starts, v) - 1 for v in range(0, n, 2)]
    if bad: print(*bad, sep='; ')
    return m, [kind(s) for s in m], d, d.max(), runs, gaps, q, [bool(s) for s in spans], [a & b for a, b in pairwise(spans)], list(accumulate(map(len, m), initial=0))

CALLS = ["([(1,3),(2,5),(7,8),(0,0)], 9, torch.tensor([1,1,0,1]))", "([(4,2),(1,),(3,3)], 4, torch.tensor([True,False]))", "([(0,2),(2,4)], 4, torch.zeros(3))", "([(0,9)], 3, torch.zeros(0))", "([(1,2),(5,6)], 6, torch.ones(2,2))"]
