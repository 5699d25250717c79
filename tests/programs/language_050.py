import torch

class Tape:
    """small autodiff on top of tensors"""
    def __init__(self): self.ops = []
    def var(self, v, *, _parents=()):
        n = Var(self, v)
        self.ops.append((n, _parents))
        return n

class Var:
    def __init__(self, tape, v): self.tape, self.v, self.grad = tape, v, None
    def _lift(self, o): return o if isinstance(o, Var) else self.tape.var(torch.as_tensor(o, dtype=torch.float))
    def __add__(self, o):
        o = self._lift(o)
        return self.tape.var(self.v + o.v, _parents=((self, lambda g: g), (o, lambda g: g)))
    def __mul__(self, o):
        o = self._lift(o)
        return self.tape.var(self.v * o.v, _parents=((self, lambda g: g * o.v), (o, lambda g: g * self.v)))
    def __getattr__(self, name):
        if name.startswith('__'): raise AttributeError(name)
        d = {'tanh': lambda v, r: 1 - r * r, 'exp': lambda v, r: r, 'relu': lambda v, r: (v > 0).to(v.dtype)}
        if name not in d:
            raise AttributeError(f'{type(self).__name__} has no {name}')
        def call():
            r = getattr(torch, name)(self.v)
            return self.tape.var(r, _parents=((self, lambda g, v=self.v: g * d[name](v, r)),))
        return call
    __radd__, __rmul__ = __add__, __mul__
    def backward(self):
        self.grad = torch.ones_like(self.v)
        for n, parents in reversed(self.tape.ops):
            if n.grad is None: continue
            for p, f in parents:
                g = f(n.grad)
                p.grad = g if p.grad is None else p.grad + g

def program(x, fns, k):
    t = Tape()
    a = t.var(x)
    y = a
    try:
        for f in fns:
            y = getattr(y, f)() * k + a
    except AttributeError as e:
        print(e)
        y = 2 * y
    y.backward()
    xt = x.clone().requires_grad_()
    yt = xt
    for f in fns:
        if not hasattr(a, f): continue
        yt = getattr(torch, f)(yt) * k + xt
    if yt is not xt:
        yt.sum().backward()
    return y.v, a.grad, xt.grad, len(t.ops), sum(n.grad is None for n, _ in t.ops), hasattr(a, 'sinh'), a.grad is y.grad

CALLS = ["(torch.tensor([0.5, -1.]), ['tanh', 'exp'], 2)", "(torch.ones(2), [], 1)", "(torch.ones(1), ['relu', 'sinh', 'tanh'], 0.5)", "(torch.empty(0), ['relu'], 3)", "(torch.arange(-1., 2), ['relu', 'relu'], -1)"]
