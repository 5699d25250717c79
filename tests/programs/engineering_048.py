import torch

class PluginMeta(type):
    plugins = {}
    def __new__(mcls, name, bases, ns, tag=None, **kw):
        cls = super().__new__(mcls, name, bases, ns, **kw)
        cls.tag = tag or name.lower()
        if bases:
            mcls.plugins[cls.tag] = cls
        return cls
    def __init__(cls, name, bases, ns, **kw):
        super().__init__(name, bases, ns)
    def __call__(cls, *args, **kw):
        key = cls, args
        if key not in PluginMeta.instances:
            PluginMeta.instances[key] = super().__call__(*args, **kw)
        return PluginMeta.instances[key]
    instances = {}
    def __contains__(cls, item): return item in cls.plugins
    def __len__(cls): return len(cls.plugins)
    def __getitem__(cls, tag): return cls.plugins[tag]

class Plugin(metaclass=PluginMeta):
    uses = 0
    def __call__(self, x):
        self.uses += 1
        type(self).total = getattr(type(self), 'total', 0) + 1
        return self.apply(x)

class Shift(Plugin):
    def __init__(self, by=1): self.by = by
    def apply(self, x): return x + self.by
class Clip(Plugin, tag='clamp'):
    def apply(self, x):
        return x.clamp(max=2) if x.max() > 2 else x

def program(x, names):
    PluginMeta.instances.clear()
    applied = []
    for n in names:
        if n not in Plugin:
            print('skip', n)
            continue
        p = Plugin[n]()
        x = p(x)
        applied.append((p.tag, p.uses, type(p).total))
    make = PluginMeta('Tmp', (Plugin,), {'apply': lambda self, x: x * self.k, 'k': 3}, tag='tmp')
    x = make()(x)
    del PluginMeta.plugins['tmp']
    for c in (Shift, Clip, make):
        if 'total' in vars(c): del c.total
    return x, applied, len(Plugin), Shift() is Shift(), Plugin.__class__.__name__

CALLS = ["(torch.arange(3.), ['shift', 'clamp', 'shift'])", "(torch.zeros(2), [])", "(torch.full((2,2), 9), ['clamp', 'zzz', 'clamp'])"]
