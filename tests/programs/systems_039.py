import torch, math

class Value:
    _ids = 0
    def __init__(self, data, _prev=(), _op=''):
        self.data, self.grad, self._prev, self._op, self._backward = data, 0.0, _prev, _op, lambda: None
        Value._ids += 1; self.id = Value._ids
    @staticmethod
    def wrap(v): return v if isinstance(v, Value) else Value(v, (), 'const')
    def __add__(self, o):
        o = Value.wrap(o); out = Value(self.data + o.data, (self, o), '+')
        def back(): self.grad = self.grad + out.grad; o.grad = o.grad + out.grad
        out._backward = back
        return out
    def __mul__(self, o):
        o = Value.wrap(o); out = Value(self.data * o.data, (self, o), '*')
        def back():
            self.grad = self.grad + o.data * out.grad
            o.grad = o.grad + self.data * out.grad
        out._backward = back
        return out
    def __pow__(self, n):
        if not isinstance(n, (int, float)): raise TypeError(f'power {type(n).__name__}')
        out = Value(self.data ** n, (self,), f'**{n}')
        def back(): self.grad = self.grad + n * self.data ** (n - 1) * out.grad
        out._backward = back
        return out
    def tanh(self):
        t = torch.tanh(torch.as_tensor(self.data)); out = Value(t, (self,), 'tanh')
        def back(): self.grad = self.grad + (1 - t * t) * out.grad
        out._backward = back
        return out
    __radd__ = __add__; __rmul__ = __mul__
    def __neg__(self): return self * -1
    def __sub__(self, o): return self + (-o)
    def __rsub__(self, o): return o + (-self)
    def __truediv__(self, o): return self * Value.wrap(o) ** -1
    def backward(self):
        order, seen = [], set()
        def visit(v):
            if v not in seen:
                seen.add(v)
                for p in v._prev: visit(p)
                order.append(v)
        visit(self)
        self.grad = torch.ones_like(self.data) if isinstance(self.data, torch.Tensor) else 1.0
        for v in reversed(order): v._backward()
        return [v._op for v in order if v._op]
    def __repr__(self): return f'V{self._op}'

def program(x, w, steps):
    ws = [Value(w), Value(0.5)]
    losses = []
    for s in range(steps):
        a, b = ws
        y = (Value(x) * a + b).tanh() - 1
        try: loss = y ** 2 / len(x)
        except TypeError as e: losses.append(str(e)); break
        ops = loss.backward()
        for p in ws: p.data = p.data - 0.1 * p.grad; p.grad = 0.0
        losses.append(loss.data.mean())
        if s == 1: print(ops)
    try: ws[0] ** ws[1]
    except TypeError as e: losses.append(e.args)
    z = 3 - ws[0] - 2 * ws[1]
    z.backward()
    return losses, [p.data for p in ws], z.data, ws[0].grad, Value._ids - ws[0].id, repr(z), [id(p) == id(q) for p, q in zip(z._prev, ws)]

CALLS = ["(torch.ones(3), 0.2, 3)", "(torch.arange(2.), torch.tensor([1., -1.]), 2)", "(torch.tensor(2.), 1.0, 1)", "(torch.zeros(0), 1, 0)", "(torch.ones(2,2), 2, 1)"]
