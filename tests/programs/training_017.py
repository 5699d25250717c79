import torch
from torch.func import vmap, grad, jvp, jacrev, functional_call
from torch import nn

def program(x, y, ridge):
    torch.manual_seed(0)
    m = nn.Linear(x.shape[1], 1)
    params = {k: v.detach() for k, v in m.named_parameters()}
    seen = []
    def loss(p, xi, yi):
        seen.append(xi.dim())
        out = functional_call(m, p, (xi,))
        l = (out.squeeze(-1) - yi) ** 2
        return l + ridge * sum((v ** 2).sum() for v in p.values()) if ridge else l
    per = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    print({k: tuple(v.shape) for k, v in per.items()})
    norms = sum(v.flatten(1).pow(2).sum(1) for v in per.values()).sqrt()
    clip = (1.0 / norms.clamp(min=1e-6)).clamp(max=1)
    clipped = {k: (v * clip.view(-1, *[1] * (v.dim() - 1))).sum(0) for k, v in per.items()}
    f = lambda t: torch.sin(t) * t.sum()
    out, tan = jvp(f, (y,), (torch.ones_like(y),))
    J = jacrev(f)(y)
    if J.numel() and not torch.allclose(J.sum(1), tan, atol=1e-4):
        print('jvp differs')
    err = None
    try:
        vmap(lambda a, b: a + b)(x, y[:1])
    except (ValueError, RuntimeError) as e:
        err = type(e).__name__
    return per, norms, clipped, out, J, seen, err, m.weight.grad is None

CALLS = ["(torch.arange(6.).reshape(3,2), torch.ones(3), 0)", "(torch.arange(6.).reshape(3,2), torch.ones(3), 0.1)", "(torch.ones(1,4), torch.ones(1), 0.5)", "(torch.ones(2,4), torch.ones(3), 0)", "(torch.ones(4,1), torch.arange(4.), 0)"]
