import torch

def armijo(f, x, d, g, t=1.0, c=1e-4, shrink=0.5):
    fx = f(x)
    slope = (g * d).sum()
    n = 0
    while f(x + t * d) > fx + c * t * slope:
        t *= shrink
        n += 1
        if n > 20:
            return 0.0, n
    return t, n

class LBFGS:
    def __init__(self, m): self.s, self.y, self.m = [], [], m
    def direction(self, g):
        q, alphas = g.clone(), []
        for s, y in zip(reversed(self.s), reversed(self.y)):
            a = s.dot(q) / s.dot(y)
            alphas.append(a)
            q -= a * y
        if self.s:
            q *= self.s[-1].dot(self.y[-1]) / self.y[-1].dot(self.y[-1])
        for (s, y), a in zip(zip(self.s, self.y), alphas[::-1]):
            q += s * (a - y.dot(q) / y.dot(s))
        return -q
    def push(self, s, y):
        if s.dot(y) > 1e-10:
            self.s.append(s); self.y.append(y)
            del self.s[:-self.m], self.y[:-self.m]
            return True
        return False

def program(A, b, x0, iters, m=2):
    f = lambda x: 0.5 * x @ A @ x - b @ x
    grad = lambda x: A @ x - b
    opt, x = LBFGS(m), x0
    g, trace = grad(x), []
    for k in range(iters):
        d = opt.direction(g)
        t, n = armijo(f, x, d, g)
        new = x + t * d
        g_new = grad(new)
        pushed = opt.push(new - x, g_new - g)
        x, g = new, g_new
        trace.append((round(t, 4), n, pushed))
        if g.norm() < 1e-4:
            print('converged', k)
            break
    return x, trace, g.norm() < 1e-2, len(opt.s)

CALLS = ["(torch.diag(torch.tensor([1.,4.,9.])), torch.ones(3), torch.zeros(3), 8)", "(torch.eye(2), torch.tensor([3.,-3.]), torch.ones(2), 3, 1)", "(-torch.eye(2), torch.zeros(2), torch.ones(2), 3)"]
