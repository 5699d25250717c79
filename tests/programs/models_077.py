import torch
from types import SimpleNamespace, MappingProxyType, GeneratorType
class Layer:
    def __init__(self, f): self.f = f
    def __rshift__(self, o): return Layer(lambda x: o(self(x)))
    def __or__(self, o): return Layer(lambda x: torch.cat([self(x), o(x)], -1))
    def __mul__(self, n): 
        r = self
        for _ in range(n - 1): r = r >> self
        return r
    def __call__(self, x): return self.f(x)
    def __xor__(self, p): return Layer(lambda x: self(x) if p(x) else x)
def lin(o): return Layer(lambda x: x @ torch.linspace(-1, 1, x.shape[-1] * o).view(-1, o))
relu, tanh, ident = Layer(torch.relu), Layer(torch.tanh), Layer(lambda x: x)
CFG = MappingProxyType({'wide': (lin(2) | ident) >> relu, 'deep': (lin(3) >> tanh) * 3, 'cond': lin(2) ^ (lambda x: x.sum() > 0), 'bad': lin(2) >> Layer(lambda x: x @ torch.ones(9, 9))})
def program(x, names):
    ns = SimpleNamespace(out={}, err=[], **{'total': 0.})
    for n in names:
        try: ns.out[n] = y = CFG[n](x)
        except KeyError as e: ns.err.append(repr(e))
        except RuntimeError as e: ns.err.append('mat' in str(e)); print('runtime', n)
        else: ns.total = ns.total + y.mean()
    try: CFG['new'] = 1
    except TypeError as e: ns.err.append(str(e))
    same = CFG['cond'](-x.abs()) is x
    ns2 = SimpleNamespace(**vars(ns)); ns2.err += ['more']
    return vars(ns), ns.err is ns2.err, ns == ns2, same, (ident >> ident)(x) is x, 'deep' in CFG, isinstance((i for i in x), GeneratorType)
CALLS = ["(torch.ones(1,2), ['wide','deep','cond'])", "(-torch.ones(2,3), ['cond','none','bad'])", "(torch.zeros(0,2), ['wide'])", "(torch.arange(3.), [])"]
