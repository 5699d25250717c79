import torch
import torch.nn.functional as F

LOSSES = {}
class Registry(type):
    def __new__(mcls, name, bases, ns, **kw):
        cls = super().__new__(mcls, name, bases, ns)
        if not ns.get('abstract', False):
            LOSSES[kw.get('key', name.lower())] = cls
        return cls
    def __init__(cls, name, bases, ns, **kw): super().__init__(name, bases, ns)
    def __call__(cls, *a, **k):
        obj = super().__call__(*a, **k)
        obj.built_by = cls.__name__
        return obj
    def __or__(cls, other):
        return lambda *a, **k: cls(*a, **k) + other(*a, **k)

class Loss(metaclass=Registry):
    abstract = True
    weight = 1.0
    def __add__(self, o): return Sum([self, o])
    def __rmul__(self, k): self.weight = self.weight * k; return self
    def __call__(self, p, t):
        l = self.compute(p, t) * self.weight
        self.last = l.detach()
        return l
class Sum(Loss, key='sum'):
    def __init__(self, parts): self.parts = parts
    def compute(self, p, t): return sum(l(p, t) for l in self.parts)
class Focal(Loss):
    gamma = 2
    def compute(self, p, t):
        b = F.binary_cross_entropy_with_logits(p, t, reduction='none')
        return ((1 - torch.exp(-b)) ** self.gamma * b).mean()
class Dice(Loss):
    def compute(self, p, t):
        s = p.sigmoid()
        return 1 - (2 * (s * t).sum() + 1) / (s.sum() + t.sum() + 1)
class Tversky(Dice, key='tv'):
    abstract = False
    def compute(self, p, t):
        base = super().compute(p, t)
        return base * 0.7 if base > 0.5 else base

def program(p, t, expr):
    env = {k: v for k, v in LOSSES.items()}
    try:
        loss = eval(expr, {'__builtins__': {}}, env)
    except NameError as e:
        print(e)
        return str(e), sorted(env), p.sum()
    p = p.clone().requires_grad_()
    l = loss(p, t)
    l.backward()
    parts = [(x.built_by, x.weight, x.last) for x in getattr(loss, 'parts', [loss])]
    if l.item() > 1: print('large')
    return l.detach(), p.grad, parts, Loss.weight, sorted(LOSSES), type(type(loss)).__name__, 'sum' in env

CALLS = ["(torch.linspace(-1,1,4), torch.tensor([0.,1,0,1]), 'focal() + 2 * dice()')", "(torch.ones(2,2), torch.zeros(2,2), '(tv | focal)()')", "(torch.ones(2), torch.ones(2), 'hinge()')", "(torch.ones(0), torch.ones(0), 'dice()')", "(torch.ones(2)*-9, torch.ones(2), '3 * focal()')", "(torch.ones(2), torch.ones(2), 'dice')"]
