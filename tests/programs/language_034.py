import torch
from collections.abc import MutableMapping, MutableSequence

class ParamGroup(MutableMapping):
    def __init__(self, **kw):
        self._d, self._touched = dict(kw), []
    def __getitem__(self, k):
        self._touched.append(k)
        return self._d[k]
    def __setitem__(self, k, v): self._d[k] = v
    def __delitem__(self, k): del self._d[k]
    def __iter__(self): return iter(self._d)
    def __len__(self): return len(self._d)

class Clipped(MutableSequence):
    def __init__(self, it=(), lim=3):
        self.d, self.lim = [], lim
        self.extend(it)
    def __getitem__(self, i): return self.d[i]
    def __setitem__(self, i, v): self.d[i] = v
    def __delitem__(self, i): del self.d[i]
    def __len__(self): return len(self.d)
    def insert(self, i, v):
        self.d.insert(i, v)
        while len(self.d) > self.lim: self.d.pop(0)

def adam(g, p):
    b1, b2 = g.get('betas', (0.9, 0.99))
    g.setdefault('m', torch.zeros_like(p))
    g.setdefault('v', torch.zeros_like(p))
    g['m'] = b1 * g['m'] + (1 - b1) * p
    g['v'] = b2 * g['v'] + (1 - b2) * p * p
    return g['m'] / (g['v'].sqrt() + 1e-8)

def program(p, steps, lim):
    g = ParamGroup(lr=0.1, name='g')
    hist = Clipped(lim=lim)
    for i in range(steps):
        u = adam(g, p)
        p = p - g['lr'] * u
        hist += [p.norm()]
        if 'decay' in g: p = p * g['decay']
        g.update({'decay': 0.5} if i == 0 else [], lr=g.pop('lr') / 2)
    hist.reverse()
    try:
        last = hist.pop()
        idx = hist.index(last) if len(hist) else -1
    except (IndexError, ValueError) as e:
        last, idx = str(e), type(e).__name__
    print(sorted(g), len(hist))
    try:
        g.popitem(); g.pop('absent')
    except KeyError as e:
        absent = e.args
    return p, [*hist], last, idx, g._touched[:12], list(g.keys() & {'lr', 'name'}).__len__(), absent, g == dict(g.items()), g.get('zz', 3)

CALLS = ["(torch.arange(3.), 3, 2)", "(torch.ones(2), 1, 5)", "(torch.ones(2), 0, 1)", "(torch.zeros(1), 4, 0)", "(torch.ones(2, 2), 2, 2)"]
