import torch
from dataclasses import dataclass, field
from functools import reduce

@dataclass(order=True)
class Bin:
    free: float
    id: int = field(compare=False)
    items: list = field(default_factory=list, compare=False, repr=False)
    def put(self, i, s):
        if s > self.free + 1e-9: return False
        self.items.append(i); self.free -= s
        return True

STRATEGY = {
    'first': lambda bins, s: next((b for b in bins if b.free >= s), None),
    'best': lambda bins, s: min((b for b in bins if b.free >= s), default=None),
    'worst': lambda bins, s: max(filter(lambda b: b.free >= s, bins), default=None),
}
def strategy(fn): STRATEGY[fn.__name__] = fn; return fn
@strategy
def nextfit(bins, s): return bins[-1] if bins and bins[-1].free >= s else None

def pack(sizes, cap, how, presort=False):
    order = sizes.argsort(descending=True, stable=True) if presort else torch.arange(len(sizes))
    bins = []
    for i in order:
        s = sizes[i]
        if s > cap: raise OverflowError(f'item {i} of {s:.1f} > {cap}')
        b = STRATEGY[how](bins, s)
        if b is None: bins.append(b := Bin(torch.tensor(float(cap)), len(bins)))
        assert b.put(i.item(), s)
    return bins

def program(sizes, cap):
    res = {}
    for how in sorted(STRATEGY):
        for pre in (False, True):
            try: res[how, pre] = pack(sizes, cap, how, pre)
            except OverflowError as e: res[how, pre] = str(e)
    ok = {k: v for k, v in res.items() if isinstance(v, list)}
    if not ok: print('nothing packed'); return res, sizes.sum()
    waste = {k: sum((b.free for b in v), torch.zeros(())) for k, v in ok.items()}
    best = min(ok, key=lambda k: (len(ok[k]), k))
    lower = torch.ceil(sizes.sum() / cap)
    return {k: [b.items for b in v] for k, v in ok.items()}, waste, best, lower, len(ok[best]) == lower, repr(ok[best][:1]), reduce(lambda a, b: a + b.items, ok[best], [])

CALLS = ["(torch.tensor([.5,.7,.5,.2,.4,.2,.5,.1]), 1)", "(torch.tensor([2.]), 1)", "(torch.zeros(0), 1)", "(torch.tensor([3,1,2]), 3)"]
