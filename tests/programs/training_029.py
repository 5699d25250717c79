import torch
import numpy as np

def program(x, kind):
    a = x.detach().numpy()
    shared = a.base is not None or np.shares_memory(a, x.detach().numpy())
    out = {}
    match kind:
        case 'inplace':
            if a.flags.writeable and a.size:
                a += 1
                a[0] = 9
            out['x'] = x.clone()
        case 'mean' | 'std' as fn:
            out[fn] = getattr(np, fn)(a, axis=0, keepdims=True)
        case ('pad', int(n)):
            out['pad'] = torch.from_numpy(np.pad(a, n))
        case {'take': idx, **rest}:
            try:
                out['take'] = torch.as_tensor(a[idx])
            except IndexError as e:
                print('bad index', idx)
                out['err'] = str(e)
            out['rest'] = rest
        case [*fs]:
            out['fs'] = [torch.from_numpy(np.asarray(getattr(np, f)(a))) for f in fs]
        case _:
            out['none'] = kind
    m = np.where(a > 0, a, 0)
    t = torch.tensor(m)
    u, inv, cnt = np.unique(a, return_inverse=True, return_counts=True)
    sc = np.float32(2.5)
    y = x * sc
    z = x + np.int64(3)
    w = np.add(a, 1.5)
    return out, shared, t, t.dtype, u, inv.shape, cnt.tolist(), y.dtype, z.dtype, w.dtype.name, type(sc * 2).__name__, float(sc), isinstance(w, np.ndarray)

CALLS = ["(torch.arange(3.), 'inplace')", "(torch.arange(6.).reshape(2,3), 'std')", "(torch.arange(3), ('pad', 1))", "(torch.arange(3), {'take': [0, 7], 'b': 1})", "(torch.arange(3.), {'take': [-1, 0]})", "(torch.arange(4., dtype=torch.float64), ['sum', 'sqrt'])", "(torch.ones(2, dtype=torch.bool), 3)", "(torch.ones(0), 'inplace')"]
