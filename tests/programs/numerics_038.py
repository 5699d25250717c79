import torch

class Metric:
    def __init__(self):
        self._defaults = {}
        self._computed = None
    def add_state(self, name, default):
        setattr(self, name, default.clone() if isinstance(default, torch.Tensor) else list(default))
        self._defaults[name] = default
    def reset(self):
        for k, v in self._defaults.items():
            setattr(self, k, v.clone() if isinstance(v, torch.Tensor) else list(v))
        self._computed = None
    def __init_subclass__(cls):
        upd, comp = cls.update, cls.compute
        def update(self, *a, **k):
            self._computed = None
            return upd(self, *a, **k)
        def compute(self):
            if self._computed is None:
                self._computed = comp(self)
            return self._computed
        cls.update, cls.compute = update, compute
    def __call__(self, *args):
        saved = {k: getattr(self, k) for k in self._defaults}
        self.reset()
        self.update(*args)
        value = self.compute()
        for k, v in saved.items():
            now = getattr(self, k)
            setattr(self, k, v + now)
        self._computed = None
        return value

class R2(Metric):
    def __init__(self):
        super().__init__()
        for n in ('sse', 'sy', 'syy', 'n'):
            self.add_state(n, torch.tensor(0.0))
        self.add_state('keys', [])
    def update(self, p, y):
        self.sse += (p - y).square().sum()
        self.sy += y.sum()
        self.syy += y.square().sum()
        self.n += y.numel()
        self.keys.append(tuple(y.shape))
    def compute(self):
        tss = self.syy - self.sy ** 2 / self.n
        return 1 - self.sse / tss if tss > 0 else torch.tensor(float('nan'))

def program(pairs):
    m = R2()
    per = [m(p, y) for p, y in pairs]
    a, b = m.compute(), m.compute()
    if a is b:
        print('cached')
    keys = m.keys
    m.reset()
    return per, a, keys, m.n, m.keys is keys, m._defaults

CALLS = ["([(torch.arange(3.), torch.arange(3.)+.1)],)", "([(torch.arange(3.), torch.arange(3.)+.1), (torch.ones(2), torch.zeros(2))],)", "([],)", "([(torch.ones(2,1), torch.arange(2.))],)"]
