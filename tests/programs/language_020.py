import torch
from types import SimpleNamespace, MappingProxyType
from collections import ChainMap, defaultdict

class Meta(type):
    instances = defaultdict(list)
    def __call__(cls, *a, **k):
        obj = super().__call__(*a, **k)
        Meta.instances[cls.__name__].append(len(Meta.instances[cls.__name__]))
        return obj
    def __getitem__(cls, params):
        return type(f'{cls.__name__}[{params}]', (cls,), {'params': params, '__module__': 'x'})
    def __contains__(cls, x): return x in getattr(cls, 'params', ())
    def __len__(cls): return 3
    def __repr__(cls): return f'<{cls.__name__}>'

class Op(metaclass=Meta):
    params = ()
    def __init__(self, **kw): self.kw = ChainMap(kw, {'alpha': 1.0, 'beta': 0.0})
    def __call__(self, x): return self.kw['alpha'] * x + self.kw['beta']
    def __getattr__(self, name):
        try:
            return self.kw[name]
        except KeyError:
            raise AttributeError(name) from None

class Relu(Op):
    def __call__(self, x): return super().__call__(x).clamp(min=self.floor if hasattr(self, 'floor') else 0)

def program(x, spec):
    Meta.instances.clear()
    ns = SimpleNamespace(out=[], ctx=ChainMap())
    for name, kw in spec:
        cls = {'op': Op, 'relu': Relu, 'typed': Relu['ab']}.get(name)
        if cls is None:
            ns.ctx = ns.ctx.new_child({name: len(ns.out)})
            continue
        op = cls(**kw)
        x = op(x)
        ns.out.append(repr(cls))
        ns.ctx[name] = op.alpha
        if 'a' in cls:
            print('typed', type(op).__name__)
    frozen = MappingProxyType(dict(ns.ctx))
    try:
        frozen['q'] = 1
    except TypeError as e:
        err = str(e)
    return x, ns, dict(Meta.instances), len(ns.ctx.maps), err, len(Op), isinstance(Relu['ab'](), Relu), Relu['q'] is Relu['q'], type(Op) is Meta, bool(Op)

_p = program
def program(x, spec):
    x, ns, *r = _p(x, spec)
    return x, ns.out, dict(ns.ctx), r

CALLS = ["(torch.arange(-2., 3), [('op', {'alpha': 2.0}), ('relu', {'beta': -1.0})])", "(torch.ones(2), [('typed', {'floor': 3.0}), ('x', {}), ('op', {})])", "(torch.ones(2), [])", "(torch.ones(2), [('z', {})])", "(torch.zeros(0), [('relu', {'alpha': None})])"]
