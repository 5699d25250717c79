import torch
from functools import partial, reduce
import operator

def newton(f, x0, tol=1e-6, maxit=30):
    x = x0.clone()
    for it in range(maxit):
        x = x.detach().requires_grad_()
        y = f(x)
        (g,) = torch.autograd.grad(y.sum(), x)
        if (g.abs() < 1e-8).any():
            raise ZeroDivisionError(f'flat at iteration {it}')
        step = y / g
        x = x - step
        if step.abs().max().item() < tol:
            return x.detach(), it + 1
    raise RuntimeError('no convergence')

def rk4(f, y, t, h):
    k = [f(t, y)]
    for c in (0.5, 0.5, 1.0):
        k.append(f(t + c * h, y + c * h * k[-1]))
    return y + h / 6 * reduce(operator.add, (w * kk for w, kk in zip((1, 2, 2, 1), k)))

def integrate(f, y, span, h, event=None):
    t, end = span
    ys = [y]
    while t < end - 1e-9:
        hh = min(h, end - t)
        y = rk4(f, y, t, hh)
        t += hh
        ys.append(y)
        if event is not None and event(t, y):
            print(f'event at t={t:.2f}'); break
    return t, torch.stack(ys)

def program(x0, coef, h):
    poly = lambda x, *c: sum(ci * x ** i for i, ci in enumerate(c))
    try:
        root, its = newton(partial(lambda c, x: poly(x, *c), coef), x0)
    except (ZeroDivisionError, RuntimeError) as e:
        root, its = type(e).__name__, str(e)
    t, ys = integrate(lambda t, y: torch.stack([y[1], -y[0] - 0.1 * t * y[1]]), torch.tensor([1., 0.]), (0, 2), h, lambda t, y: y[0] < 0)
    return root, its, round(t, 4), ys[-1], len(ys)

CALLS = ["(torch.tensor([1.5, 3.]), (-2, 0, 1), 0.25)", "(torch.tensor([0.]), (1, 0, 1), 0.7)", "(torch.tensor([.3]), (1, 0.1, 1), 0.1)", "(torch.tensor([2.]), (5,), 0.5)", "(torch.tensor(2.), (-5, 1), 3)", "(torch.ones(0), (-1, 1), .5)"]
