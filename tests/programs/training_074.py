import torch
from torch.func import vmap, grad, vjp, jacfwd, hessian, stack_module_state, functional_call
from torch import nn
import copy

def maml(task_x, task_y, init, inner, lr):
    losses = []
    def loss(p, x, y): return ((torch.tanh(x @ p['w']) * p['g'] - y) ** 2).mean()
    def adapt(p, x, y):
        for _ in range(inner):
            g = grad(loss)(p, x, y)
            p = {k: v - lr * g[k] for k, v in p.items()}
        return p
    def outer(p, x, y): return loss(adapt(p, x, y), x, y)
    def total(p): return vmap(outer, (None, 0, 0))(p, task_x, task_y).mean()
    g, val = torch.func.grad_and_value(total)(init)
    return g, val

def ensemble(models, x):
    params, bufs = stack_module_state(models)
    base = copy.deepcopy(models[0]).to('meta')
    return vmap(lambda p, b, x: functional_call(base, (p, b), (x,)), in_dims=(0, 0, None))(params, bufs, x)

def program(tx, ty, inner, lr, n):
    init = {'w': torch.full((tx.shape[-1],), .3), 'g': torch.tensor(1.5)}
    g, val = maml(tx, ty, init, inner, lr)
    torch.manual_seed(0)
    models = [nn.Sequential(nn.Linear(tx.shape[-1], 2), nn.ReLU(), nn.BatchNorm1d(2)).eval() for _ in range(n)]
    try:
        e = ensemble(models, tx[0])
        same = torch.allclose(e[-1], models[-1](tx[0]), atol=1e-5)
    except (RuntimeError, IndexError) as err:
        print(type(err).__name__); e, same = None, str(err)[:30]
    H = hessian(lambda w: (w ** 3).sum() + w.prod())(init['w'])
    out, back = vjp(lambda a, b: (a * b, a.sum()), init['w'], init['w'] + 1)
    ga, gb = back((torch.ones_like(out[0]), torch.tensor(2.)))
    aux_g, aux = grad(lambda w: (w.pow(2).sum(), w * 2), has_aux=True)(init['w'])
    nested = vmap(vmap(lambda a, b: a * b, (None, 0)), (0, None))(init['w'], torch.arange(3.))
    try: grad(lambda w: w * 2)(init['w'])
    except RuntimeError as err: print(str(err)[:40])
    try: vmap(lambda w: w if w > 0 else -w)(init['w'])
    except RuntimeError as err: bad = 'data-dependent' in str(err)
    else: bad = None
    torch.manual_seed(3)
    rnd = vmap(lambda w: w + torch.randn(2), randomness='different')(init['w'])
    J = jacfwd(torch.sin)(init['w'])
    return g, val, e, same, H, ga, gb, aux, aux_g, nested, bad, rnd, J, out[1], e.requires_grad if e is not None else None

CALLS = ["(torch.arange(12.).reshape(2,3,2)/12, torch.ones(2,3), 1, .1, 2)", "(torch.ones(1,2,3), torch.zeros(1,2), 2, .5, 3)", "(torch.ones(2,2,1), torch.zeros(2,2), 0, .5, 1)", "(torch.ones(1,2,2), torch.ones(1,2), 1, .1, 0)"]
