import torch

def em(x, k, iters, tol=1e-3):
    n = len(x)
    mean = x[torch.linspace(0, n - 1, k).long()].clone()
    std = torch.full((k,), x.std().item() + 0.1)
    pi = torch.full((k,), 1 / k)
    prev, trace = None, []
    for it in range(iters):
        logp = torch.distributions.Normal(mean, std).log_prob(x[:, None]) + pi.log()
        ll = logp.logsumexp(1).mean()
        trace.append(ll.item())
        resp = (logp - logp.logsumexp(1, keepdim=True)).exp()
        nk = resp.sum(0)
        if (dead := nk < 1e-3).any():
            print('dead', dead.nonzero().flatten().tolist())
            mean[dead] = x.mean()
            nk = nk.clamp(min=1e-3)
        mean = (resp * x[:, None]).sum(0) / nk
        std = ((resp * (x[:, None] - mean) ** 2).sum(0) / nk).sqrt().clamp_(min=1e-2)
        pi = nk / n
        if prev is not None and abs(ll - prev) < tol: break
        prev = ll
    else:
        it = None
    return mean, std, pi, trace, it

def program(x, k, iters=10):
    mean, std, pi, trace, it = em(x, k, iters)
    order = mean.argsort()
    grew = all(b >= a - 1e-5 for a, b in zip(trace, trace[1:]))
    if it is None: print('no convergence')
    return mean[order], std[order], pi[order], len(trace), it, grew

CALLS = ["(torch.tensor([0.,.2,.1,5.,5.3]), 2)", "(torch.tensor([0.,.2,.1,5.,5.3]), 2)", "(torch.tensor([0.,.2,.1,5.,5.3]), 3, 2)", "(torch.ones(1), 1)", "(torch.tensor([1.,2.]), 1, 0)"]
