import torch
class Mask:
    """int-like / list-like protocols"""
    def __init__(self, bits): self.bits = list(bits)
    def __len__(self): return sum(self.bits)
    def __getitem__(self, i):
        if isinstance(i, slice): return Mask(self.bits[i])
        return self.bits[i]
    def __index__(self): return int(''.join('01'[bool(b)] for b in self.bits) or '0', 2)
    def __invert__(self): return Mask(not b for b in self.bits)
    def __and__(self, o):
        if not isinstance(o, Mask): return NotImplemented
        return Mask(a and b for a, b in zip(self, o))
    def __rand__(self, o): return 'rand', o
    def __eq__(self, o): return torch.tensor(self.bits) == torch.tensor(o.bits)
    __hash__ = None
    def __reversed__(self): return Mask(self.bits[::-1])
    def __contains__(self, x): return x.item() in self.bits if torch.is_tensor(x) else False
    def __repr__(self): return f'Mask({self.bits})'

def program(x, bits):
    m = Mask(bits)
    y = x * len(m)
    if not m: y = y - 1
    picked = x[m.bits[:len(x)]] if len(bits) >= len(x) else x[:0]
    hexed = hex(m), range(8)[m] if m.__index__() < 8 else None
    z = x[operator_index(m) % len(x)]
    eq = m == ~m
    try: {m}
    except TypeError as e: err = str(e)
    if z > 0: print('z', z.item(), bin(m))
    return y, picked, hexed, eq, err, m & ~m, 3 & m, reversed(m), torch.tensor(True) in m, 5 in m, list(m[1:]), bool(m), torch.zeros(3).sum() == m.__index__()

def operator_index(m):
    import operator
    return operator.index(m)

CALLS = ["(torch.arange(3.), [True, False, True])", "(torch.ones(2), [False, False])", "(torch.tensor([-1.]), [True]*5)", "(torch.ones(3), [])"]
