import torch

class Masked:
    """tensor with validity mask, arithmetic through __getattr__-made operators"""
    def __init__(self, data, mask=None):
        self.data = data
        self.mask = data.isfinite() if mask is None else mask
    def __repr__(self):
        return '[' + ' '.join(f'{v:g}' if m else '--' for v, m in zip(self.data.flatten().tolist(), self.mask.flatten().tolist())) + ']'
    def reduce(self, name, dim=None):
        fill = {'sum': 0., 'amax': -torch.inf, 'amin': torch.inf, 'prod': 1.}[name]
        filled = torch.where(self.mask, self.data, fill)
        f = getattr(filled, name)
        return f() if dim is None else Masked(f(dim), self.mask.any(dim))
    def __setitem__(self, k, v):
        self.data[k] = v
        self.mask[k] = True
    def __getitem__(self, k): return Masked(self.data[k], self.mask[k])
    def __len__(self): return int(self.mask.sum())
    def __contains__(self, v): return bool((self.data[self.mask] == v).any())
    def __invert__(self): return Masked(self.data, ~self.mask)
    def __array__(self, *a): return self.data.numpy()
for _op in ('add', 'sub', 'mul', 'truediv', 'floordiv', 'mod'):
    def _make(op):
        d = f'__{op}__'
        def f(self, o):
            om = o.mask if isinstance(o, Masked) else True
            od = o.data if isinstance(o, Masked) else o
            r = getattr(self.data, d)(od)
            return Masked(r, self.mask & om & r.isfinite())
        f.__name__ = d
        return f
    setattr(Masked, f'__{_op}__', _make(_op))
del _op, _make

def program(x, y, k):
    a, b = Masked(x.clone()), Masked(y)
    res = []
    for op in '+-*/%':
        try: r = eval(f'a {op} b')
        except RuntimeError as e: res.append((op, type(e).__name__)); continue
        res.append((op, repr(r), len(r)))
    q = a // 2
    try: red = [a.reduce(n) for n in ('sum', 'amax', 'amin')] + [a.reduce('prod', -1).data]
    except (RuntimeError, IndexError) as e: red = str(e)[:40]
    try: a.reduce('median')
    except KeyError as e: print('no', e)
    try: a[k] = 42
    except (IndexError, RuntimeError) as e: print(type(e).__name__)
    run = 0
    for i, m in enumerate(a.mask.flatten().tolist()):
        run = run + 1 if m else 0
        if run >= 3: print('run ends at', i); break
    if a: res.append('nonempty')
    return res, repr(q), red, a.data, a.mask, 42 in a, len(~a), a[..., :1].data, a[a.mask].data if a.mask.any() else None, x, [m for m in vars(Masked) if m.startswith('__') and m.endswith('div__')]

CALLS = ["(torch.tensor([1., float('nan'), 3.]), torch.tensor([0., 2., 1.]), 1)", "(torch.ones(2,2), torch.tensor([float('inf'), 2.]), (0, 1))", "(torch.zeros(0), torch.ones(1), 0)", "(torch.ones(3), torch.ones(2), torch.tensor([True, False, True]))", "(torch.arange(4), torch.arange(4)+1, slice(None, None, 2))", "(torch.tensor(5.), torch.tensor(2.), ())"]
