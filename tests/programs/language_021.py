import torch
from dataclasses import dataclass, field, asdict, astuple, InitVar, KW_ONLY

@dataclass
class Metric:
    name: str
    _: KW_ONLY
    decay: float = 0.9
    history: list = field(default_factory=list, repr=False)
    value: float = field(init=False, default=0.0)
    seed: InitVar[int] = 0

    def __post_init__(self, seed):
        self.value = float(seed)

    def update(self, t):
        v = t.mean().item() if torch.is_tensor(t) else float(t)
        self.value = self.decay * self.value + (1 - self.decay) * v
        self.history.append(v)
        return self

class Registry:
    _inst = None
    def __new__(cls, *a):
        if cls._inst is None:
            cls._inst = super().__new__(cls)
            cls._inst.metrics = {}
        return cls._inst
    def __getattr__(self, name):
        if name.startswith('_'):
            raise AttributeError(name)
        return self.metrics.setdefault(name, Metric(name))
    def __setattr__(self, name, v):
        if name == 'metrics' or name.startswith('_'):
            return super().__setattr__(name, v)
        getattr(self, name).update(v)
    def __delattr__(self, name):
        del self.metrics[name]
    def __dir__(self): return [*self.metrics]

def program(xs, drop):
    Registry._inst = None
    r = Registry()
    for i, x in enumerate(xs):
        setattr(r, 'loss' if i % 2 else 'acc', x)
        r.norm = x.norm() if isinstance(x, torch.Tensor) else abs(x)
        if r.norm.value > 1:
            print(f'{r.norm}')
    try:
        del r.acc, r.loss
    except KeyError as e:
        print('no', e)
    if drop:
        del r.norm
    m = Metric('m', decay=.5, seed=3).update(torch.ones(2))
    return {k: asdict(v) for k, v in r.metrics.items()}, dir(r), Registry() is r, repr(m), astuple(m), m == Metric('m', decay=.5), hasattr(r, '_x'), torch.tensor(m.history) + 1

CALLS = ["([torch.ones(3), torch.arange(3.), torch.ones(2) * 9], False)", "([1, 2.5], True)", "([], False)", "([torch.zeros(0)], True)", "([torch.ones(1, dtype=torch.int), 2], False)"]
