import torch
from functools import partial, partialmethod, reduce
import operator as op

class Pipe:
    def __init__(self, *fns): self.fns = fns
    def __or__(self, f): return Pipe(*self.fns, f)
    def __ror__(self, x): return self(x)
    def __rshift__(self, n): return Pipe(*self.fns[n:], *self.fns[:n])
    def __call__(self, x): return reduce(lambda v, f: f(v), self.fns, x)
    def __matmul__(self, other): return Pipe(lambda x: self(other(x)))
    def __len__(self): return len(self.fns)
    def __getitem__(self, k):
        r = self.fns[k]
        return Pipe(*r) if isinstance(k, slice) else r
    def _apply(self, name, *a): return self | op.methodcaller(name, *a)
    relu = partialmethod(_apply, 'relu')
    scale = partialmethod(_apply, 'mul')
    clamp = partialmethod(_apply, 'clamp', 0)

def program(x, k):
    p = Pipe().relu().scale(2).clamp(k)
    adders = [lambda t: t + i for i in range(3)]
    fixed = [lambda t, i=i: t + i for i in range(3)]
    q = reduce(op.or_, adders, Pipe()) @ p
    r = reduce(op.or_, fixed, Pipe())
    out = [x | p, x | q, x | r, x | (p >> 1), x | p[:2], x | p[::-1]]
    f = partial(torch.sum, dim=0)
    g = partial(f, keepdim=True)
    if (out[0] > 1).any():
        print('big', len(p), len(q))
    try:
        bad = p[7]
    except IndexError as e:
        bad = str(e)
    items = sorted(enumerate(o.sum().item() for o in out), key=op.itemgetter(1), reverse=True)
    shape = op.attrgetter('shape', 'dtype', 'T.ndim')(out[0])
    return out, f(x), g(x), g.keywords, g.func is torch.sum, bad, items, shape, g.args

CALLS = ["(torch.arange(-2., 3), 3)", "(torch.ones(2, 3), 1)", "(torch.zeros(0), 0)", "(torch.tensor([1, -5]), 4)", "(torch.arange(-2., 3), 3.5)"]
