import torch

def cg(A, b, tol=1e-5, maxit=None, callback=lambda **k: None):
    x = torch.zeros_like(b)
    r = b - A(x)
    p, rs = r, r @ r
    for i in range(maxit if maxit is not None else len(b) * 2):
        Ap = A(p)
        d = p @ Ap
        if d <= 0:
            raise ArithmeticError('not positive definite', i)
        alpha = rs / d
        x = x + alpha * p
        r = r - alpha * Ap
        new = r @ r
        if callback(i=i, res=new.sqrt().item()) == 'stop' or new.sqrt() < tol:
            break
        p, rs = r + new / rs * p, new
    else:
        return x, False
    return x, True

def power(A, n):
    v = torch.ones(A.shape[0])
    lam = prev = None
    for k in range(n):
        v = A @ v
        norm = v.norm()
        if not norm:
            return None, k
        v /= norm
        prev, lam = lam, (v @ A @ v).item()
        if prev is not None and abs(lam - prev) < 1e-6:
            return round(lam, 4), k
    return lam and round(lam, 3), n

def sinkhorn(C, eps, n):
    K = torch.exp(-C / eps)
    u = torch.ones(C.shape[0]) / C.shape[0]
    a, b = torch.full_like(u, 1 / C.shape[0]), torch.full((C.shape[1],), 1 / C.shape[1])
    for it in range(n):
        v = b / (K.T @ u)
        u_prev, u = u, a / (K @ v)
        if (u - u_prev).abs().max() < 1e-4: break
    return u[:, None] * K * v, it

def program(A, b, stop):
    trace = []
    def cb(*, i, res, **_):
        trace.append(round(res, 3))
        return 'stop' if i == stop else None
    try:
        x, ok = cg(lambda v: A @ v, b, callback=cb)
    except ArithmeticError as e:
        x, ok = None, e.args
        print(*e.args)
    try:
        plan, it = sinkhorn(A.abs(), 0.5, 20)
    except Exception as e:
        plan, it = type(e).__name__, str(e)[:20]
    return x, ok, trace, power(A, 15), plan, it

CALLS = ["(torch.tensor([[4.,1.],[1.,3.]]), torch.tensor([1.,2.]), -1)", "(torch.eye(3), torch.ones(3), 0)", "(-torch.eye(2), torch.ones(2), -1)", "(torch.zeros(2,2), torch.zeros(2), -1)", "(torch.ones(0,0), torch.ones(0), -1)", "(torch.tensor([[4.,1.],[1.,3.]]), torch.tensor([1.,2.], dtype=torch.float64), 1)"]
