import torch
from dataclasses import dataclass

@dataclass(eq=False)
class Tensor2:
    data: torch.Tensor
    prev: tuple = ()
    back: object = None
    grad: torch.Tensor = None
    def __add__(self, o):
        out = Tensor2(self.data + o.data, (self, o))
        def back():
            self.acc(out.grad); o.acc(out.grad)
        out.back = back
        return out
    def __mul__(self, o):
        out = Tensor2(self.data * o.data, (self, o))
        def back():
            self.acc(out.grad * o.data); o.acc(out.grad * self.data)
        out.back = back
        return out
    def relu(self):
        out = Tensor2(self.data.clamp(min=0), (self,))
        out.back = lambda: self.acc(out.grad * (out.data > 0))
        return out
    def acc(self, g): self.grad = g if self.grad is None else self.grad + g
    def backward(self):
        topo, seen = [], set()
        def visit(n):
            if n in seen: return
            seen.add(n)
            for p in n.prev: visit(p)
            topo.append(n)
        visit(self)
        self.grad = torch.ones_like(self.data)
        for n in reversed(topo):
            if n.back: n.back()
        return len(topo)

def program(a, b, steps):
    log = []
    for s in range(steps):
        ta, tb = Tensor2(a), Tensor2(b)
        out = (ta * tb + ta).relu() * tb
        n = out.backward()
        if ta.grad.abs().max() < 1e-3: print('flat at', s); break
        a = a - 0.1 * ta.grad
        b = b - 0.1 * tb.grad
        log.append((n, out.data.sum().item()))
    x = a.clone().requires_grad_()
    ((x * b + x).relu() * b).sum().backward()
    return a, b, log, x.grad

CALLS = ["(torch.ones(2), torch.arange(2.), 3)", "(torch.ones(2), torch.arange(2.), 3)", "(-torch.ones(2), torch.ones(2), 2)", "(torch.ones(1), torch.ones(2), 1)", "(torch.arange(3), torch.ones(3), 1)"]
