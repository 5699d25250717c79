import torch
from torch import nn
import functools

def counted(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return fn(*args, **kwargs)
    wrapper.calls = 0
    return wrapper

@counted
def closure_loss(w, x, y):
    return (x @ w - y).pow(2).sum()

def program(x, y, max_iter=4):
    closure_loss.calls = 0
    w = torch.zeros(x.shape[1], requires_grad=True)
    opt = torch.optim.LBFGS([w], lr=0.5, max_iter=max_iter)
    values = []
    def closure():
        opt.zero_grad()
        loss = closure_loss(w, x, y)
        loss.backward()
        values.append(loss.item())
        return loss
    first = opt.step(closure)
    second = opt.step(closure)
    if second < first:
        print('better', len(values) == closure_loss.calls)
    state = opt.state[w]
    return values, w, w.grad, state['n_iter'], closure_loss.calls, closure_loss.__name__

CALLS = ["(torch.eye(2)*2, torch.tensor([1.,4.]))", "(torch.eye(2)*2, torch.tensor([1.,4.]))", "(torch.ones(3,2), torch.arange(3.), 2)", "(torch.ones(3,2), torch.arange(2.))"]
