import torch

def pairwise(x, kernel):
    n = len(x)
    K = torch.empty(n, n)
    for i in range(n):
        for j in range(i, n):
            K[i, j] = K[j, i] = kernel(x[i], x[j])
    return K

class Kernel:
    def __init__(self, f, name): self.f, self.name = f, name
    def __call__(self, a, b): return self.f(a, b)
    def __add__(s, o): return Kernel(lambda a, b: s(a, b) + o(a, b), f'({s.name}+{o.name})')
    def __mul__(s, o):
        if isinstance(o, (int, float)): return Kernel(lambda a, b: o * s(a, b), f'{o}{s.name}')
        return Kernel(lambda a, b: s(a, b) * o(a, b), f'{s.name}*{o.name}')
    __rmul__ = __mul__
    def __matmul__(s, g): return Kernel(lambda a, b: s(g(a), g(b)), f'{s.name}@{getattr(g, "__name__", "?")}')

rbf = Kernel(lambda a, b: torch.exp(-(a - b).pow(2).sum()), 'rbf')
lin = Kernel(torch.dot, 'lin')
white = Kernel(lambda a, b: 1.0 if a is b or torch.equal(a, b) else 0.0, 'I')

def gp(x, y, q, k, noise):
    K = pairwise(x, k)
    jitter = noise
    for attempt in range(4):
        L, info = torch.linalg.cholesky_ex(K + jitter * torch.eye(len(x)))
        if not info.any():
            break
        print('jitter', jitter := max(jitter * 10, 1e-4))
    else:
        raise torch.linalg.LinAlgError('cannot factor')
    a = torch.cholesky_solve(y[:, None], L)
    kq = torch.stack([torch.stack([torch.as_tensor(k(p, xi)) for xi in x]) for p in q])
    v = torch.linalg.solve_triangular(L, kq.T, upper=False)
    var = torch.stack([torch.as_tensor(k(p, p)) for p in q]) - v.square().sum(0)
    return (kq @ a).squeeze(1), var, attempt

def program(x, y, q, expr, noise):
    k = {'rbf': rbf, 'sum': rbf + 0.5 * lin, 'neg': -3 * lin, 'warp': (rbf * lin) @ torch.tanh, 'white': rbf + white}[expr]
    try:
        mu, var, at = gp(x, y, q, k, noise)
    except torch.linalg.LinAlgError as e:
        return k.name, str(e), pairwise(x, k)
    return k.name, mu, var, at, (var < 0).any().item(), mu.dtype

CALLS = ["(torch.tensor([[0.],[1.]]), torch.tensor([1.,2.]), torch.tensor([[.5]]), 'rbf', 1e-3)", "(torch.tensor([[0.],[0.],[1.]]), torch.ones(3), torch.tensor([[.5],[0.]]), 'sum', 0.)", "(torch.eye(2), torch.ones(2), torch.eye(2), 'neg', 0)", "(torch.eye(2), torch.ones(2), torch.eye(2), 'warp', .1)", "(torch.eye(2), torch.ones(2), torch.eye(2)[:1], 'white', 0.)", "(torch.ones(0,1), torch.ones(0), torch.ones(1,1), 'rbf', .1)"]
