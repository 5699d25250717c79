import torch
def lstsq(A, b, ridge=0.):
    try:
        L = torch.linalg.cholesky(A.T @ A + ridge * torch.eye(A.shape[1]))
        return torch.cholesky_solve(A.T @ b[:, None], L)[:, 0], 'chol'
    except torch.linalg.LinAlgError:
        return torch.linalg.pinv(A) @ b, 'pinv'
    except RuntimeError as e:
        raise ValueError('shapes', *A.shape, *b.shape) from e
def irls(A, b, p=1., iters=5):
    x, how = lstsq(A, b); hist = []
    for _ in range(iters):
        r = (A @ x - b).abs().clamp(min=1e-3)
        w = r ** (p / 2 - 1)
        x2, how = lstsq(A * w[:, None], b * w)
        hist.append((x2 - x).norm().item()); x = x2
        if hist[-1] < 1e-4: break
    return x, how, hist
def poly_features(x, d): return torch.stack([x ** k for k in range(d + 1)], 1)
def program(x, y, d, ridge):
    A = poly_features(x, d)
    try: w, how = lstsq(A, y, ridge)
    except ValueError as e: return e.args, type(e.__cause__).__name__, e.__context__ is e.__cause__
    try: rob, how2, h = irls(A, y)
    except ValueError as e: rob, how2, h = None, str(e), []
    res = y - A @ w
    print(how, how2, 'R2=%.3f' % (1 - res.var() / y.var()) if len(y) > 1 else 'few')
    return w.round(decimals=3), how, None if rob is None else rob.round(decimals=2), how2, len(h), (res.abs() > 1e-2).tolist()
CALLS = ["(torch.linspace(0,1,6), torch.tensor([0.,.2,.4,.6,.8,5.]), 1, 0.)", "(torch.ones(3), torch.tensor([1.,2.,3.]), 2, 0.)", "(torch.ones(3), torch.tensor([1.,2.,3.]), 1, .5)", "(torch.ones(3), torch.ones(2), 1, .5)", "(torch.zeros(0), torch.zeros(0), 0, 1.)"]
