import torch
from torch.autograd import Function
from torch.autograd.functional import jacobian, hessian, hvp

class Implicit(Function):
    """fixed point z = tanh(w z + x), gradient through the implicit function theorem"""
    iters = []
    @staticmethod
    def forward(x, w):
        z = torch.zeros_like(x)
        for i in range(50):
            new = torch.tanh(w * z + x)
            if (new - z).abs().max() < 1e-6 if x.numel() else True:
                break
            z = new
        Implicit.iters.append(i)
        return z
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[1], output)
        ctx.set_materialize_grads(False)
    @staticmethod
    def backward(ctx, g):
        if g is None:
            print('no grad'); return None, None
        w, z = ctx.saved_tensors
        d = 1 - z * z
        gz = g * d / (1 - w * d)
        return gz, (gz * z).sum_to_size(w.shape) if ctx.needs_input_grad[1] else None

class Double(Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.n = n
        x.mul_(2 * n)
        ctx.mark_dirty(x)
        return x
    @staticmethod
    def backward(ctx, g): return g * 2 * ctx.n, None

def program(x, w, need_w, order):
    Implicit.iters.clear()
    x = x.clone().requires_grad_(); w = w.clone().requires_grad_(need_w)
    z = Implicit.apply(x, w)
    y = x * 1
    yd = Double.apply(y, order)
    same = yd is y
    grads = torch.autograd.grad((z * yd).sum(), [x, w], allow_unused=True) if need_w else torch.autograd.grad((z + yd).sum(), x)
    f = lambda t: (t ** 3).sum()
    J = jacobian(lambda t: t ** order, x.detach())
    H = hessian(f, x.detach()) if order > 1 else hvp(f, x.detach(), torch.ones_like(x))
    try:
        torch.autograd.grad(z.sum(), w if not need_w else torch.ones(1))
    except RuntimeError as e:
        err = str(e)[:45]
    gg = None
    if order == 2:
        g1, = torch.autograd.grad(f(x), x, create_graph=True)
        gg = torch.autograd.grad(g1.sum(), x)[0]
    try: Double.apply(x, 1)
    except RuntimeError as e: print(str(e)[:30])
    return z.detach(), grads, same, J, H, err, gg, Implicit.iters, type(z.grad_fn).__name__, y.grad_fn is yd.grad_fn

CALLS = ["(torch.ones(2)/3, torch.tensor(.5), True, 1)", "(torch.arange(3.)/3, torch.ones(3)/4, True, 2)", "(torch.ones(2), torch.tensor(.1), False, 3)", "(torch.ones(0), torch.tensor(.1), False, 1)", "(torch.ones(2,1), torch.ones(3)/4, True, 2)"]
