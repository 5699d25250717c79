import torch, json
class Enc(json.JSONEncoder):
    def default(self, o):
        if torch.is_tensor(o): return {'__t__': o.tolist(), 'd': str(o.dtype).rpartition('.')[2]}
        if isinstance(o, (set, frozenset)): return sorted(o)
        if isinstance(o, complex): return [o.real, o.imag]
        return super().default(o)
def hook(d):
    if '__t__' in d: return torch.tensor(d['__t__'], dtype=getattr(torch, d['d']))
    return d
def infer(rows):
    cols = {}
    for r in rows:
        for k, v in r.items(): cols.setdefault(k, []).append(v)
    return {k: ('num' if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in vs) else 'bool' if all(isinstance(v, bool) for v in vs) else 'cat') for k, vs in cols.items()}
def table(rows):
    kinds = infer(rows); parts, names = [], []
    for k, kind in kinds.items():
        vals = [r.get(k) for r in rows]
        if kind == 'num':
            t = torch.tensor([float('nan') if v is None else v for v in vals]); m = t.nanmean()
            parts.append(t.nan_to_num(nan=m.item())[:, None]); names.append(k)
        elif kind == 'bool': parts.append(torch.tensor([bool(v) for v in vals]).float()[:, None]); names.append(f'{k}?')
        else:
            u = sorted({str(v) for v in vals})
            parts.append(torch.nn.functional.one_hot(torch.tensor([u.index(str(v)) for v in vals]), len(u)).float()); names += [f'{k}={v}' for v in u]
    return torch.cat(parts, 1), names
def program(text, extra):
    try: rows = json.loads(text)
    except json.JSONDecodeError as e: return e.msg, e.lineno, e.colno
    try: x, names = table(rows)
    except (RuntimeError, ValueError, AttributeError) as e: print('no table'); return type(e).__name__
    s = json.dumps({'x': x, 'extra': extra, 'n': names}, cls=Enc, sort_keys=True)
    back = json.loads(s, object_hook=hook)
    try: json.dumps(object, cls=Enc)
    except TypeError as e: err = str(e)
    return x, names, s, torch.equal(back['x'], x), back['extra'], err, infer(rows)
CALLS = ["('[{\"a\":1,\"b\":\"x\",\"c\":true},{\"a\":null,\"b\":\"y\"}]', {3,1})", "('[{\"a\":1.5},{\"a\":2},{}]', torch.arange(3))", "('[', None)", "('[]', 1j)", "('[{\"f\":false}]', 2+3j)"]
