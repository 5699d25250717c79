import torch
from functools import lru_cache, singledispatch, cached_property, total_ordering, wraps

@singledispatch
def encode(v, d): raise TypeError(f'cannot encode {type(v).__name__}')
@encode.register
def _(v: int, d): return torch.full((d,), float(v))
@encode.register(float)
def _(v, d): return torch.full((d,), v) / 2
@encode.register(str)
def _(v, d): return sum((encode(ord(c), d) for c in v), torch.zeros(d))
@encode.register(list)
@encode.register(tuple)
def _(v, d): return torch.stack([encode(i, d) for i in v]).mean(0) if v else torch.zeros(d)
@encode.register(torch.Tensor)
def _(v, d): return v.flatten()[:d] if v.numel() >= d else torch.nn.functional.pad(v.flatten(), (0, d - v.numel()))

@lru_cache(maxsize=2)
def basis(d, kind='cos'):
    print('basis', d, kind)
    return getattr(torch, kind)(torch.arange(d) * 1.0)

@total_ordering
class Doc:
    made = 0
    def __init__(self, v, d):
        type(self).made += 1
        self.v, self.d, self.n = v, d, self.made
    @cached_property
    def vec(self):
        Doc.made += 100
        return encode(self.v, self.d) * basis(self.d)
    @cached_property
    def norm(self):
        return self.vec.norm().item()
    def __lt__(self, o): return self.norm < o.norm
    def __eq__(self, o): return isinstance(o, Doc) and self.norm == o.norm
    def __hash__(self): return hash(self.norm)
    def __repr__(self): return f'Doc<{self.n}:{self.norm:.2f}>'

def program(values, d):
    Doc.made = 0
    basis.cache_clear()
    docs = []
    for v in values:
        try:
            doc = Doc(v, d); doc.vec
        except TypeError as e:
            print('skip', e); continue
        docs.append(doc)
    docs.sort(reverse=True)
    sims = torch.stack([a.vec for a in docs]) @ torch.stack([a.vec for a in docs]).T if docs else None
    b = basis(d); b2 = basis(d, kind='sin'); b3 = basis(d)
    return repr(docs), sims, len(set(docs)), max(docs, default=None) is (docs[0] if docs else None), basis.cache_info(), b is b3, Doc.made, [sorted(x.__dict__) for x in docs], docs[:1] == docs[:1]

CALLS = ["([1, 2.5, 'ab', [1, (2,)]], 3)", "([torch.ones(2,2), torch.ones(1), None, True], 3)", "([], 2)", "([[], '', 0], 2)", "([{}, 3], 1)"]
