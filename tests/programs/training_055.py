import torch

class Var:
    """tiny reverse-mode autodiff checked against torch"""
    tape = []
    def __init__(self, v, parents=()):
        self.v, self.parents, self.g = v, parents, None
        Var.tape.append(self)
    def _bin(op, grads):
        def f(self, o):
            o = o if isinstance(o, Var) else Var(torch.as_tensor(o, dtype=self.v.dtype))
            return Var(op(self.v, o.v), [(p, g) for p, g in zip((self, o), grads(self.v, o.v))])
        return f
    __add__ = _bin(lambda a, b: a + b, lambda a, b: (lambda g: g, lambda g: g))
    __mul__ = _bin(lambda a, b: a * b, lambda a, b: (lambda g: g * b, lambda g: g * a))
    __pow__ = _bin(lambda a, b: a ** b, lambda a, b: (lambda g: g * b * a ** (b - 1), lambda g: g * 0))
    __radd__, __rmul__ = __add__, __mul__
    del _bin
    def __neg__(self): return self * -1
    def __sub__(self, o): return self + (-o)
    def backward(self):
        self.g = torch.ones_like(self.v)
        for node in reversed(Var.tape[:Var.tape.index(self) + 1]):
            if node.g is None: continue
            for p, g in node.parents:
                d = g(node.g)
                while d.dim() > p.v.dim(): d = d.sum(0)
                p.g = d if p.g is None else p.g + d

EXPRS = {'poly': lambda x, y: 3 * x ** 2 + x * y - y, 'mix': lambda x, y: (x + 1) * (x - y) + (x if x is y else y), 'const': lambda x, y: x * 0 + 5}

def program(a, b, name):
    Var.tape = []
    x, y = Var(a), Var(b)
    out = EXPRS[name](x, y)
    out.backward()
    ta, tb = a.clone().requires_grad_(), b.clone().requires_grad_()
    t = EXPRS[name](ta, tb)
    t.sum().backward()
    same = torch.allclose(t, out.v)
    if y.g is None:
        print('y unused')
    ok = torch.allclose(x.g.sum_to_size(a.shape) if x.g.dim() >= a.dim() else x.g, ta.grad)
    return out.v, x.g, y.g, ta.grad, tb.grad, same, ok, len(Var.tape), hasattr(Var, '_bin'), Var.__radd__ is Var.__add__, Var.__add__.__qualname__, Var.tape.index(out)

CALLS = ["(torch.arange(3.)+1, torch.ones(3), 'poly')", "(torch.arange(3.)+1, torch.ones(()), 'mix')", "(torch.ones(2,2), torch.ones(2), 'const')", "(torch.ones(0), torch.ones(0), 'poly')", "(torch.zeros(2), torch.zeros(2), 'poly')", "(torch.ones(2), torch.ones(3), 'mix')"]
