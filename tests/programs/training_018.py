import torch
import string

class Einsum:
    """named-axis builder:  Einsum(a='batch time', b='time chan') -> 'batch chan'"""
    def __init__(self, **specs):
        self.specs = {k: tuple(v.split()) for k, v in specs.items()}
        letters = iter(string.ascii_lowercase)
        self.letter = {}
        for axes in self.specs.values():
            for ax in axes:
                if ax not in self.letter:
                    self.letter[ax] = next(letters)
    def __rshift__(self, out):
        self.out = out.split()
        bad = set(self.out) - self.letter.keys()
        if bad:
            raise KeyError(*sorted(bad))
        return self
    @property
    def equation(self):
        lhs = ','.join(''.join(map(self.letter.__getitem__, ax)) for ax in self.specs.values())
        return f"{lhs}->{''.join(self.letter[a] for a in self.out)}"
    def __call__(self, **tensors):
        if missing := self.specs.keys() - tensors.keys():
            raise TypeError(f'missing {sorted(missing)}')
        sizes = {}
        for name, axes in self.specs.items():
            for ax, n in zip(axes, tensors[name].shape, strict=True):
                if sizes.setdefault(ax, n) != n:
                    raise ValueError(f'{ax}: {sizes[ax]} != {n}')
        return torch.einsum(self.equation, *(tensors[k] for k in self.specs)), sizes

def program(a, b, out):
    try:
        e = Einsum(a='batch time', b='time chan') >> out
    except KeyError as k:
        print('unknown axes', k.args)
        return k.args, a + 1
    try:
        r, sizes = e(a=a, b=b)
    except ValueError as v:
        return str(v), type(v.__context__).__name__, e.equation, b * 2
    try:
        e(a=a)
    except TypeError as t:
        print(t)
    return r, sizes, e.equation, e.letter

CALLS = ["(torch.ones(2,3), torch.arange(6.).reshape(3,2), 'batch chan')", "(torch.ones(2,3), torch.arange(6.).reshape(3,2), '')", "(torch.ones(2,3), torch.ones(2,3), 'time')", "(torch.ones(2), torch.ones(2,3), 'time')", "(torch.ones(2,2), torch.ones(2,3), 'time foo bar')", "(torch.ones(0,2), torch.ones(2,3), 'chan time batch')"]
