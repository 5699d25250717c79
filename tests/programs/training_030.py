import torch
import itertools

DTYPES = [torch.bool, torch.uint8, torch.int32, torch.int64, torch.float16, torch.float32, torch.complex64]

def short(d):
    return str(d).removeprefix('torch.')

def table(v, scalars):
    t = {}
    for a, b in itertools.combinations(DTYPES, 2):
        x, y = v.to(a), v.to(b)
        r = x + y
        assert r.dtype is torch.result_type(x, y) is torch.promote_types(a, b)
        t[short(a), short(b)] = short(r.dtype)
    for d, s in itertools.product(DTYPES, scalars):
        x = v.to(d)
        for op in ('__mul__', '__truediv__', '__floordiv__', '__rsub__'):
            try:
                r = getattr(x, op)(s)
            except Exception as e:
                t[short(d), repr(s), op] = type(e).__name__
            else:
                t[short(d), repr(s), op] = short(r.dtype) if r is not NotImplemented else 'NI'
    return t

def program(v, scalars):
    t = table(v, scalars)
    errors = [k for k, e in t.items() if e.endswith('Error')]
    print(len(t), len(errors))
    zero = v.sum().to(torch.float64)
    d0 = (v.to(torch.float32) * zero).dtype
    x = v.to(torch.int32)
    try:
        x += 1.5
    except RuntimeError as e:
        r = str(e)
    else:
        r = None
    try:
        x /= 2
    except RuntimeError as e:
        r2 = str(e)[:50]
    return t, errors, d0, r, r2, x, (True + v.bool()).dtype, torch.can_cast(torch.float, torch.int)

CALLS = ["(torch.arange(3.), [2, 1.5, True])", "(torch.ones(2,2), [2j, -3])", "(torch.zeros(0), [0.0])", "(torch.tensor(1.), ['x', None])"]
