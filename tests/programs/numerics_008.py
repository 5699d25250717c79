import torch
from torch import nn

class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        s = torch.sigmoid(beta * x)
        ctx.save_for_backward(x, s)
        ctx.beta = beta
        return x * s
    @staticmethod
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        return grad * (s + ctx.beta * x * s * (1 - s)), None

class Layer(nn.Module):
    beta = 1.0
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        nn.init.eye_(self.lin.weight)
        nn.init.constant_(self.lin.bias, 0.1)
    def forward(self, x):
        return Swish.apply(self.lin(x), self.beta)

def program(x, depth, betas):
    layers = nn.ModuleList(Layer(x.shape[-1]) for _ in range(depth))
    for layer, beta in zip(layers, betas):
        layer.beta = beta
    grads = {}
    def save(name):
        def hook(g):
            grads[name] = g.clone()
            return g * 2 if name.endswith('0') else None
        return hook
    h = x.clone().requires_grad_()
    start = h
    for i, layer in enumerate(layers):
        h = layer(h)
        h.register_hook(save(f'h{i}'))
        if h.mean() > 5:
            print('large', i)
            h = h / 2
    loss = h.sum()
    loss.backward()
    gs = [l.lin.bias.grad for l in layers]
    return loss, start.grad, grads, gs, sorted(grads), Layer.beta

CALLS = ["(torch.arange(4.).reshape(2,2), 2, [1., 2.])", "(torch.arange(4.).reshape(2,2), 2, [1., 2.])", "(torch.ones(1,3)*20, 3, [0.5])", "(torch.ones(3), 0, [])"]
