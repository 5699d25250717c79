import torch
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
from torch import nn

CALLED = {'n': 0}

def block(x, w, *, bias=None):
    CALLED['n'] += 1
    h = torch.sin(x @ w)
    if bias is not None:
        h = h + bias
    return h, x.mean()

def program(x, n, use, bias):
    CALLED['n'] = 0
    ws = [torch.full((x.shape[-1], x.shape[-1]), 0.1 * (i + 1), requires_grad=True) for i in range(n)]
    h = x.clone().requires_grad_()
    inp = h
    means = []
    for w in ws:
        if use:
            h, m = checkpoint(block, h, w, use_reentrant=False, bias=bias)
        else:
            h, m = block(h, w, bias=bias)
        means.append(m)
    fwd = CALLED['n']
    loss = h.square().sum() + sum(means)
    loss.backward()
    print('forward', fwd, 'total', CALLED['n'])
    seq = nn.Sequential(nn.Tanh(), nn.Tanh(), nn.Tanh())
    z = checkpoint_sequential(seq, 2, inp.detach().requires_grad_(), use_reentrant=False)
    return loss.detach(), [w.grad for w in ws], inp.grad, fwd, CALLED['n'], z.detach(), z.requires_grad

CALLS = ["(torch.ones(2,3), 2, True, None)", "(torch.ones(2,3), 2, False, torch.ones(3))", "(torch.arange(4.).reshape(2,2), 3, True, torch.ones(2))", "(torch.ones(0,3), 1, True, None)", "(torch.ones(2,3), 0, True, None)"]
