import torch
from itertools import product

class Registry(type):
    items = {}
    def __new__(m, name, bases, ns, key=None):
        cls = super().__new__(m, name, bases, ns)
        if key: m.items[key] = cls
        return cls
    def __init__(cls, name, bases, ns, key=None): super().__init__(name, bases, ns)
    def __getitem__(cls, key): return Registry.items[key]
    def __len__(cls): return len(Registry.items)
    def __call__(cls, *a):
        obj = super().__call__(*a)
        cls.made = getattr(cls, 'made', 0) + 1
        return obj

class Kernel(metaclass=Registry):
    def __call__(self, x, y): return self.k(x[:, None] - y[None])
    def __add__(self, o): return Sum(self, o)
class RBF(Kernel, key='rbf'):
    def __init__(self, l=1.): self.l = l
    def k(self, d): return (-d.square().sum(-1) / (2 * self.l ** 2)).exp()
class White(Kernel, key='white'):
    def __init__(self, s=.1): self.s = s
    def k(self, d): return self.s * (d.abs().sum(-1) == 0)
class Sum(Kernel):
    def __init__(self, *ks): self.ks = ks
    def __call__(self, x, y): return sum(k(x, y) for k in self.ks)

class GP:
    def __init__(self, kern): self.kern = kern
    def fit(self, x, y):
        self.x = x
        jitter = 0.0
        while True:
            try:
                self.L = torch.linalg.cholesky(self.kern(x, x) + jitter * torch.eye(len(x)))
                break
            except torch.linalg.LinAlgError:
                jitter = max(jitter * 10, 1e-6)
                print('jitter', jitter)
                if jitter > 1: raise
        self.alpha = torch.cholesky_solve(y[:, None], self.L)
        return jitter

def program(x, y, names):
    Kernel.made = RBF.made = White.made = 0
    kern, *rest = [Kernel[n]() for n in names]
    for k in rest: kern = kern + k
    gp = GP(kern)
    j = gp.fit(x, y)
    grid = torch.tensor(list(product([0., 1.], repeat=x.shape[1])))
    mean = gp.kern(grid, x) @ gp.alpha
    if mean.abs().max() > 0.9: print('confident')
    return mean, j > 0, RBF.made, White.made, len(Kernel), type(kern).__name__, bool(Kernel)

CALLS = ["(torch.tensor([[0.],[1.]]), torch.tensor([1.,-1.]), ['rbf','white'])", "(torch.tensor([[0.],[1.]]), torch.tensor([1.,-1.]), ['rbf','white'])", "(torch.zeros(2,2), torch.ones(2), ['rbf'])", "(torch.zeros(1,1), torch.ones(1), ['lin'])", "(torch.zeros(1,1), torch.ones(1), [])"]
