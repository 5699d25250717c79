import torch
from copy import deepcopy
import pickle
class Config:
    def __init__(self, **kw): self.__dict__.update(kw)
    def __getstate__(self): return {k: v for k, v in vars(self).items() if not k.startswith('_')}
    def __setstate__(self, s): self.__dict__.update(s, _restored=True)
    def __eq__(self, o): return vars(self).keys() == vars(o).keys()
def program(x, n):
    c = Config(w=x, _cache=[x], n=n, me=None)
    c.me = c
    d = deepcopy(c)
    if x.sum() > 1:
        d.w += 1
        print('changed')
    e = pickle.loads(pickle.dumps({'a': d.w, 'b': d.w}))
    e['a'] *= n
    return d.w, e, e['a'] is e['b'], d.me is d, c == d, sorted(vars(d)), c.w is x, '%s' % d.w.tolist()
CALLS = ["(torch.ones(3), 2)", "(torch.zeros(2), 3)", "(torch.ones(3), 2)"]
