import torch

class Unit(torch.Tensor):
    """a tensor with a unit"""
    @staticmethod
    def __new__(cls, data, unit=''):
        return torch.Tensor._make_subclass(cls, data)
    def __init__(self, data, unit=''):
        self.unit = unit
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = super().__torch_function__(func, types, args, kwargs)
        units = [getattr(a, 'unit', '') for a in args if isinstance(a, torch.Tensor)]
        if func in (torch.Tensor.mul, torch.mul):
            u = '*'.join(x for x in units if x)
        elif func in (torch.Tensor.add, torch.add):
            if len(set(units)) > 1:
                raise TypeError(f'cannot add {units[0]!r} and {units[1]!r}')
            u = units[0]
        else:
            u = units[0] if units else ''
        if isinstance(out, Unit):
            out.unit = u
        return out
    def to_base(self, factor):
        return self.as_subclass(torch.Tensor) * factor

def program(x, y, ux, uy):
    a, b = Unit(x, ux), Unit(y, uy)
    res = {}
    p = a * b
    res['mul'] = (p.unit, type(p).__name__, p.as_subclass(torch.Tensor))
    try:
        s = a + b
        res['add'] = (s.unit, s.to_base(2))
    except TypeError as e:
        print(e)
        res['add'] = str(e)
    n = a.sum()
    res['sum'] = (n.unit, n.item(), isinstance(n, Unit))
    res['plain'] = type(x + 1).__name__, type(1 + a).__name__, type(torch.cat([a, b]) if x.shape == y.shape else x).__name__
    a += 1
    res['inplace'] = getattr(a, 'unit', None), x
    return res

CALLS = ["(torch.ones(2), torch.arange(2.), 'm', 's')", "(torch.ones(2), torch.arange(2.), 'm', 'm')", "(torch.ones(2,1), torch.arange(2.), '', 'm')", "(torch.ones(0), torch.ones(0), 'm', 'm')", "(torch.ones(2), torch.ones(3), 'm', 'm')"]
