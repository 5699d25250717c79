import torch

class Typed:
    def __init__(self, kind, default=None): self.kind, self.default = kind, default
    def __set_name__(self, owner, name): self.slot = '_' + name
    def __get__(self, obj, owner=None):
        if obj is None: return self
        return obj.__dict__.get(self.slot, self.default)
    def __set__(self, obj, v):
        if not isinstance(v, self.kind): raise TypeError(f'{self.slot[1:]} must be {self.kind.__name__}, got {type(v).__name__}')
        obj.__dict__[self.slot] = v
        obj.log.append(self.slot)
    def __delete__(self, obj): del obj.__dict__[self.slot]

class Filter:
    state = Typed(torch.Tensor)
    gain = Typed(float, 0.5)
    def __init__(self, state, cov):
        self.log = []
        self.state, self.cov = state, cov
    def predict(self, f, q):
        self.state = f @ self.state
        self.cov = f @ self.cov @ f.T + q
    def correct(self, z, h, r):
        s = h @ self.cov @ h.T + r
        k = self.cov @ h.T @ torch.linalg.inv(s)
        innov = z - h @ self.state
        self.state = self.state + k @ innov
        self.cov = self.cov - k @ h @ self.cov
        if innov.abs() > 2: self.gain = self.gain / 2
        return innov.item()

def program(zs, gain=None):
    f = torch.tensor([[1., 1.], [0., 1.]])
    kf = Filter(torch.zeros(2), torch.eye(2))
    err = None
    try:
        if gain is not None: kf.gain = gain
    except TypeError as e:
        err = str(e)
    innov = []
    for z in zs:
        kf.predict(f, 0.01 * torch.eye(2))
        innov.append(kf.correct(z.reshape(1), torch.tensor([[1., 0.]]), torch.eye(1)))
        if kf.gain < 0.3: print('gain', kf.gain); del kf.gain
    return kf.state, kf.cov, innov, kf.gain, kf.log, err, Filter.gain.default, sorted(vars(kf))

CALLS = ["(torch.tensor([1.,2.,3.]),)", "(torch.tensor([1.,2.,9.,1.]),)", "(torch.tensor([1.,2.,9.,1.]), 1)", "(torch.tensor([5.]), torch.tensor(1.))", "(torch.tensor([]), 0.1)"]
