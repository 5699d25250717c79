import torch
from functools import singledispatch, singledispatchmethod
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum, Flag
from fractions import Fraction

class Color(Enum): RED = 1; BLUE = 'b'
@dataclass
class Point: x: float; y: float = 0.0; tag: Color = Color.RED

KINDS = {}
def kind(cls): KINDS[cls.__name__] = cls; return cls
kind(Point); kind(Color)

@singledispatch
def dump(o): raise TypeError(f'cannot serialise {type(o).__name__}')
@dump.register(int)
@dump.register(str)
@dump.register(type(None))
def _(o): return o
@dump.register
def _(o: float): return {'$float': o.hex()}
@dump.register(bool)
def _(o): return {'$bool': int(o)}
@dump.register(list)
def _(o): return [dump(i) for i in o]
@dump.register(tuple)
def _(o): return {'$tuple': [*map(dump, o)]}
@dump.register(dict)
def _(o): return {str(k): dump(v) for k, v in o.items()}
@dump.register(torch.Tensor)
def _(o): return {'$tensor': o.flatten().tolist(), 'shape': list(o.shape), 'dtype': str(o.dtype)[6:]}
@dump.register(Enum)
def _(o): return {'$kind': type(o).__name__, 'name': o.name}
@dump.register(object)
def _(o):
    if not is_dataclass(o): raise TypeError(f'cannot serialise {type(o).__qualname__}')
    return {'$kind': type(o).__name__} | {f.name: dump(getattr(o, f.name)) for f in fields(o)}

def load(d):
    match d:
        case {'$float': h}: return float.fromhex(h)
        case {'$bool': b}: return bool(b)
        case {'$tuple': xs}: return tuple(load(x) for x in xs)
        case {'$tensor': data, 'shape': s, 'dtype': dt}: return torch.tensor(data, dtype=getattr(torch, dt)).reshape(s)
        case {'$kind': k, 'name': n} if issubclass(KINDS[k], Enum): return KINDS[k][n]
        case {'$kind': k, **rest}: return KINDS[k](**{a: load(b) for a, b in rest.items()})
        case dict(): return {k: load(v) for k, v in d.items()}
        case [*xs]: return [load(x) for x in xs]
        case _: return d

def program(obj, x):
    try: d = dump(obj)
    except TypeError as e: print(e); return str(e), x + 1
    back = load(d)
    same = back == obj if not isinstance(obj, (dict, torch.Tensor, list)) else str(back) == str(obj)
    total = sum((v.sum() for v in back.values() if isinstance(v, torch.Tensor)), x) if isinstance(back, dict) else x * 2
    return d, back, same, total, dump.dispatch(bool).__name__, len(dump.registry), dump.dispatch(Color) is dump.dispatch(Enum), back is obj

CALLS = ["({'a': torch.arange(4.).reshape(2,2), 'p': Point(1.5, tag=Color.BLUE), 't': (1, True, None)}, torch.ones(1))", "([1.1, 'x', [torch.tensor(True)]], torch.ones(2))", "({1, 2}, torch.zeros(1))", "(Point(0.1), torch.ones(2))", "({'z': Fraction(1,2)}, torch.ones(1))", "({}, torch.ones(0))"]
