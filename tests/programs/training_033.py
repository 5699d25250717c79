import torch
from torch import nn
import weakref, gc

class Layer(nn.Module):
    instances = weakref.WeakSet()
    def __init_subclass__(cls, /, tag=None, **kw):
        super().__init_subclass__(**kw)
        cls.tag = tag or cls.__name__.lower()
        Zoo.kinds[cls.tag] = cls
    def __init__(self, d):
        super().__init__()
        Layer.instances.add(self)
        self.w = nn.Parameter(torch.ones(d))
class Zoo:
    kinds = {}
class Mul(Layer, tag='*'):
    def forward(self, x): return x * self.w
class Add(Layer):
    def forward(self, x): return x + self.w
class Gate(Layer, tag='gate'):
    def __init__(self, d, inner='*'):
        super().__init__(d)
        self.inner = Zoo.kinds[inner](d)
    def forward(self, x):
        return torch.sigmoid(self.w) * self.inner(x)

def build(spec, d):
    for s in spec:
        name, _, arg = s.partition(':')
        yield Zoo.kinds[name](d, *filter(None, [arg]))

def program(x, spec):
    layers = build(spec, x.shape[-1])
    net = nn.Sequential(*layers)
    alive = len(Layer.instances)
    y = net(x)
    freed = []
    weakref.finalize(net[0], freed.append, 'first') if len(net) else None
    ref = weakref.ref(net[-1]) if len(net) else None
    if len(net):
        del net[-1]
    gc.collect()
    print('alive', len(Layer.instances), ref is None or ref() is None)
    z = net(x)
    del net, layers
    gc.collect()
    class Tmp(Layer, tag='tmp'):
        forward = lambda self, x: x @ self.w
    t = Tmp(x.shape[-1])(x)
    del Zoo.kinds['tmp']
    return y, z, t, alive, freed, len(Layer.instances), sorted(Zoo.kinds), Tmp.tag, Tmp.__qualname__, x.grad_fn

CALLS = ["(torch.arange(4.).reshape(2,2), ['*', 'add', 'gate'])", "(torch.ones(3), ['gate:add'])", "(torch.ones(2,2), [])", "(torch.ones(2), ['nope'])", "(torch.ones(0,2), ['add','add'])"]
