import torch, copy

class Migration:
    chain = {}
    def __init__(self, frm): self.frm = frm
    def __call__(self, fn): Migration.chain[self.frm] = fn; fn.to = self.frm + 1; return fn

@Migration(1)
def add_scale(d):
    d['scale'] = d.pop('factor', 1.0)
@Migration(2)
def split_name(d):
    """first/last"""
    first, _, last = d.pop('name').partition(' ')
    return {**d, 'first': first, 'last': last or None}
@Migration(3)
def tensorise(d):
    d['data'] = torch.tensor([float(v) for v in d['data']]) * d['scale']
    del d['scale']
@Migration(4)
def normal(d):
    s = d['data'].sum()
    d['data'] = d['data'] / s if s != 0 else d['data']
    d.setdefault('meta', {}).update(sum=s, steps=[*d.get('meta', {}).get('steps', ()), 'normal'])

def migrate(doc, target):
    d = copy.deepcopy(doc); v = d.pop('version', 1); trail = []
    while v != target:
        try: fn = Migration.chain[v]
        except KeyError: raise LookupError(f'no migration from v{v}') from None
        before = set(d)
        try: d = fn(d) or d
        except (KeyError, ValueError, AttributeError) as e: raise ValueError(f'{fn.__name__}: {e!r}') from e
        trail.append((fn.__name__, fn.__doc__, sorted(before ^ set(d))))
        v = fn.to
    d['version'] = v
    return d, trail

def program(docs, target):
    done, failed = [], {}
    for i, doc in enumerate(docs):
        try: done.append(migrate(doc, target))
        except ValueError as e: failed[i] = str(e), type(e.__cause__).__name__; print('doc', i, e)
        except LookupError as e: failed[i] = str(e), e.__suppress_context__
    tot = sum((d['data'].sum() for d, _ in done if isinstance(d.get('data'), torch.Tensor)), torch.zeros(()))
    return done, failed, tot, [d['version'] if 'version' in d else None for d in docs], [list(d) for d in docs]

CALLS = ["([{'name': 'Ada Lovelace', 'data': [1, '2'], 'factor': 2}, {'version': 3, 'data': [], 'scale': 1}], 5)", "([{'version': 2}, {'version': 3, 'data': ['x'], 'scale': 1}], 4)", "([], 1)", "([{'version': 9}, {'version': 4, 'data': torch.ones(2), 'meta': {'steps': ['a']}}], 5)"]
