import torch
class Scale(torch.autograd.Function):
    calls = []
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x); ctx.k = k
        Scale.calls.append('f')
        return x * k
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        Scale.calls.append(('b', float(g.sum())))
        return g * ctx.k, None
def program(x, k):
    Scale.calls.clear()
    seen = []
    x = x.clone().requires_grad_()
    y = Scale.apply(x, k)
    y.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
    z = y.pow(2).sum()
    if z > 10:
        z = z / z.detach()
        print('norm')
    z.backward()
    return x.grad, seen, list(Scale.calls), y.requires_grad, x.is_leaf, type(y.grad_fn).__name__
CALLS = ["(torch.ones(3), 2.)", "(torch.ones(2), .5)", "(torch.zeros(1), 3.)"]
