import torch
def squash(s, dim=-1):
    n2 = s.square().sum(dim, keepdim=True)
    return n2 / (1 + n2) * s / (n2 + 1e-8).sqrt()
class Routing:
    __match_args__ = ('iters', 'temp')
    def __init__(self, iters=3, temp=1.): self.iters, self.temp = iters, temp
    def __call__(self, u):
        b = torch.zeros(u.shape[:3])
        log = []
        for r in range(self.iters):
            c = (b / self.temp).softmax(2)
            v = squash((c[..., None] * u).sum(1))
            agree = (u * v[:, None]).sum(-1)
            log.append(c.max().item())
            if len(log) > 1 and abs(log[-1] - log[-2]) < 1e-4:
                print('converged', r); break
            b = b + agree
        else:
            log.append('limit')
        return (v if self.iters else None), log
def describe(r):
    match r:
        case Routing(0): return 'none'
        case Routing(i, 1.0) if i > 2: return f'plain{i}'
        case Routing(temp=t, iters=1 | 2 as i): return f'short{i}@{t}'
        case Routing(): return 'other'
        case _: return 'no'
def program(u, rs):
    res = {}
    for args in rs:
        r = Routing(*args)
        v, log = r(u)
        res[describe(r)] = None if v is None else (v, v.norm(dim=-1).argmax(-1)), log
    return res, describe(3)
CALLS = ["(torch.arange(48.).reshape(1,4,3,4).sin(), [(3,), (1,), (0,), (5,.5)])", "(torch.zeros(2,2,2,2), [(4,)])", "(torch.ones(0,2,2,2), [(0,), (2,2.)])", "(torch.ones(1,1,1,1), [])"]
