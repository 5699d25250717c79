import torch

class Dim:
    """lazy sequence with __index__, used wherever ints are used"""
    def __init__(self, t): self.t = t
    def __index__(self): return int(self.t.max())
    def __mul__(self, o): return NotImplemented
    def __hash__(self): return hash(int(self))
    def __eq__(self, o): return int(self) == o
    def __bool__(self): return self.t.sum().item() != 0
    def __len__(self): return 99

class Truthy:
    def __init__(self, t): self.t = t
    def __len__(self): return int(self.t.sum())

class Cont:
    def __init__(self, t): self.t = t
    def __contains__(self, v): return (self.t == v).any()
    def __length_hint__(self): return int(self.t[0])
    def __iter__(self): return iter(self.t.tolist())

def program(x, y):
    d = Dim(x)
    out = []
    for f in (lambda: 'ab' * d, lambda: d * 'ab', lambda: [0, 1] * d, lambda: (1,) * d, lambda: list(range(d)), lambda: 'hello'[d], lambda: 'hello'[:d], lambda: [9, 8, 7][d:], lambda: hex(d), lambda: {2: 'two'}.get(d),
              lambda: d in (1, 2), lambda: bytes(d), lambda: 1 << d if False else chr(97 + d.__index__()), lambda: round(2.567, d), lambda: torch.zeros(d).shape, lambda: y.sum(d), lambda: y[d], lambda: y.narrow(0, 0, d), lambda: int('11', d),
              lambda: 'x'.center(d), lambda: 'a,b,c,d'.split(',', d), lambda: bool(d), lambda: not d, lambda: bool(Truthy(x)), lambda: len(Truthy(x)), lambda: 2 in Cont(x), lambda: list(Cont(x)), lambda: sum(Cont(x)), lambda: '%d' % d, lambda: d or 5, lambda: (1).to_bytes(d, 'big'), lambda: [1, 2, 3].pop(d), lambda: [1, 2].__getitem__(d), lambda: y.reshape(d, -1), lambda: max(d, 1) == d):
        try:
            r = f()
        except (TypeError, ValueError, IndexError, RuntimeError, OverflowError) as e:
            r = type(e).__name__, str(e)[:50]
        out.append('self' if r is d else r)
    l = [1, 2, 3, 4]
    try:
        l[d] = 'set'
        del l[:d]
        l *= d
    except (IndexError, TypeError) as e:
        print(e)
    return out, l, x.sum() + y.sum()

CALLS = ["(torch.tensor([1, 2]), torch.ones(3, 2))", "(torch.tensor([0.]), torch.ones(2))", "(torch.tensor([-1.]), torch.arange(4.))", "(torch.zeros(0), torch.ones(1))", "(torch.tensor([1]), torch.arange(6.).reshape(2, 3))"]
