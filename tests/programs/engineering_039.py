import torch
from graphlib import TopologicalSorter, CycleError
import operator

class Var:
    counter = 0
    def __init__(self, value, parents=(), grads=()):
        self.value, self.parents, self.grads = value, parents, grads
        Var.counter += 1
        self.id = Var.counter
        self.grad = torch.zeros_like(value)
    def __hash__(self): return self.id
    def __eq__(self, o): return self is o
    def __add__(self, o):
        o = lift(o)
        return Var(self.value + o.value, (self, o), (lambda g: g, lambda g: g))
    __radd__ = __add__
    def __mul__(self, o):
        o = lift(o)
        return Var(self.value * o.value, (self, o), (lambda g: g * o.value, lambda g: g * self.value))
    __rmul__ = __mul__
    def __neg__(self): return self * -1.0
    def __sub__(self, o): return self + (-lift(o))
    def relu(self):
        return Var(self.value.clamp(min=0), (self,), (lambda g: g * (self.value > 0),))
    def sum(self):
        return Var(self.value.sum(), (self,), (lambda g: g.expand_as(self.value),))

def lift(v):
    return v if isinstance(v, Var) else Var(torch.as_tensor(v, dtype=torch.float32))

def backward(root):
    ts = TopologicalSorter()
    stack = [root]
    seen = set()
    while stack:
        v = stack.pop()
        if v in seen: continue
        seen.add(v)
        ts.add(v, *v.parents)
        stack.extend(v.parents)
    root.grad = torch.ones_like(root.value)
    for v in reversed([*ts.static_order()]):
        for p, f in zip(v.parents, v.grads):
            p.grad = p.grad + f(v.grad)
    return len(seen)

def program(x, w, b):
    Var.counter = 0
    a, c = Var(x), Var(w)
    h = (a * c + b).relu()
    if h.value.sum() > 2:
        h = h * h
        print('square')
    out = (h - 1.0 + a).sum()
    n = backward(out)
    return a.grad, c.grad, out.value, n, Var.counter

CALLS = ["(torch.arange(3.), torch.ones(3), 0.5)", "(-torch.ones(2), torch.ones(2), 0.)", "(torch.ones(2,2), torch.full((2,2), 2.), 1)", "(torch.tensor([.5]), torch.tensor([.25]), torch.tensor([1.]))"]
