import torch
from functools import wraps, singledispatch
from collections.abc import Mapping, Sequence

@singledispatch
def to_float(x): raise TypeError(f'cannot convert {type(x).__name__}')
@to_float.register
def _(x: torch.Tensor): return x.float()
@to_float.register(int)
@to_float.register(float)
def _(x): return torch.tensor(float(x))
@to_float.register(Mapping)
def _(x): return type(x)((k, to_float(v)) for k, v in x.items())
@to_float.register(Sequence)
def _(x): return type(x)(to_float(v) for v in x)
@to_float.register(str)
def _(x): return torch.tensor([float(ord(c)) for c in x])

def flatten(x, prefix=''):
    match x:
        case dict():
            for k, v in x.items():
                yield from flatten(v, f'{prefix}.{k}' if prefix else str(k))
        case list() | tuple():
            for i, v in enumerate(x):
                yield from flatten(v, f'{prefix}[{i}]')
        case _:
            yield prefix, x

def program(sample, scale):
    conv = to_float(sample)
    flat = dict(flatten(conv))
    total = sum(v.sum() for v in flat.values())
    if total > 10:
        print('big', sorted(flat))
        for v in flat.values():
            v *= scale
    return conv, flat, total, sample

CALLS = ["({'a': torch.arange(3), 'b': [1, 2.5, ('x',)]}, 0.5)", "({'a': torch.arange(3), 'b': [1, 2.5, ('x',)]}, 0.5)", "((1, [True]), 2)", "([], 1)", "({'a': None}, 1)", "([torch.ones(9)*5.], 2.)"]
