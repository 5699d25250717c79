import torch
from collections import UserList, UserString, UserDict, OrderedDict

class Batch(UserList):
    def __getitem__(self, i):
        r = super().__getitem__(i)
        return r.rows if isinstance(r, Batch) and False else r
    @property
    def rows(self): return torch.stack(list(self)) if self else torch.zeros(0)
    def __add__(self, o):
        r = super().__add__(o)
        r.origin = 'add'
        return r

class Label(UserString):
    def __mod__(self, args): return type(self)(self.data % (args,))
    def shout(self): return self.upper() + '!'

class Bounded(OrderedDict):
    limit = 2
    def __setitem__(self, k, v):
        super().__setitem__(k, v)
        self.move_to_end(k)
        while len(self) > self.limit:
            old = self.popitem(last=False)
            self.dropped = getattr(self, 'dropped', ()) + (old[0],)

class Ci(UserDict):
    def __setitem__(self, k, v): self.data[k.lower()] = v
    def __getitem__(self, k): return self.data[k.lower()]
    def __contains__(self, k): return k.lower() in self.data

def program(xs, keys):
    b = Batch(xs)
    c = b + [x * 2 for x in xs]
    d = c[1:3]
    b *= 2
    od, ci = Bounded(), Ci(A=1)
    for k, x in zip(keys, c):
        od[k] = x.sum()
        ci[k] = od[k]
    if 'a' in ci:
        print(Label('key %s') % 'a', len(ci))
    try:
        l = Label('n=%d') % 'x'
    except TypeError as e:
        l = Label(str(e)).shout()
    try:
        miss = ci['zz']
    except KeyError as e:
        miss = e.args
    rev = [k for k in reversed(od)]
    return c.rows, d.rows, type(d).__name__, len(b), getattr(c, 'origin', None), hasattr(d, 'origin'), dict(od), getattr(od, 'dropped', None), ci.data, str(l), isinstance(l, str), miss, rev, c == c[:], c.data is c.copy().data, Label('b') in Label('abc'), od == dict(od)

CALLS = ["([torch.ones(2), torch.arange(2.)], ['A', 'b', 'a', 'C'])", "([torch.ones(1)], ['x'])", "([], [])", "([torch.ones(2)] * 3, 'AbCdE')", "([torch.ones(1), torch.ones(2)], 'q')"]
