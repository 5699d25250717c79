import torch
class Field:
    def __set_name__(self, owner, name): self.name = '_' + name; owner.fields = getattr(owner, 'fields', ()) + (name,)
    def __get__(self, obj, cls=None): return self if obj is None else getattr(obj, self.name, None)
    def __set__(self, obj, v):
        if torch.is_tensor(v) and v.isnan().any(): raise ValueError(self.name)
        obj.log.append(self.name); setattr(obj, self.name, v)
class Rec:
    a, b = Field(), Field()
    def __init__(self, **kw):
        self.log = []
        for k, v in kw.items(): setattr(self, k, v)
    def __delattr__(self, n): self.log.append('del ' + n); super().__delattr__('_' + n)
def program(x, k):
    r = Rec(a=x)
    try: r.b = x / k
    except (ValueError, ZeroDivisionError) as e: r.b = repr(e)
    r.a += 1
    if r.a.sum() > 3: del r.a
    try: del r.zz
    except AttributeError as e: print(type(e).__name__)
    return r, r.a, r.b, r.log, Rec.fields, x
CALLS = ["(torch.ones(3), 2)", "(torch.zeros(2), 0)", "(torch.zeros(2), torch.tensor(0.))"]
