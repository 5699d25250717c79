import torch
from collections import ChainMap, UserDict, UserList
class Scope(UserDict):
    def __missing__(self, k):
        if isinstance(k, tuple): return [self[i] for i in k]
        raise KeyError(k)
    def __setitem__(self, k, v): super().__setitem__(k.lower() if isinstance(k, str) else k, v)
class History(UserList):
    def append(self, x):
        if self and torch.equal(self[-1], x): self.dups = getattr(self, 'dups', 0) + 1
        else: super().append(x)
    def __add__(self, o): r = super().__add__(o); r.dups = getattr(self, 'dups', 0); return r
def program(x, upd, n):
    base = Scope(LR=.1, decay=.5); over = Scope(upd); cm = ChainMap(over, base)
    h = History()
    for i in range(n):
        lr = cm['lr']
        x = x - lr * x.sign()
        h.append(x.clamp(min=0))
        if (x < 0).any(): cm['lr'] = lr * cm.get('decay', 1.); 
    child = cm.new_child({'lr': 0})
    try: cm['zz']
    except KeyError as e: err = str(e)
    g = h + [x]
    if len(h) < n: print('dups', getattr(h, 'dups', None))
    try: pair = base['lr', 'decay']
    except KeyError as e: pair = e.args
    return x, list(h), dict(cm), child['lr'], child.parents is cm, child.parents == cm, err, type(g).__name__, g.dups, pair, sorted(over.data), base.data, type(h[:1]).__name__, over.copy() == over
CALLS = ["(torch.tensor([.3,.2]), {}, 4)", "(torch.zeros(2), {'Lr': 1.}, 3)", "(torch.ones(1), {'decay': torch.tensor(.1)}, 0)", "(torch.zeros(0), {'lr': 2}, 2)"]
