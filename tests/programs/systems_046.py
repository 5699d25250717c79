import torch, functools

def power_iter(A, k=1, tol=1e-6, maxit=200, seed=3):
    g = torch.Generator().manual_seed(seed)
    found = []
    A = A.clone()
    for _ in range(k):
        v = torch.rand(A.shape[0], generator=g) + .1
        v /= v.norm()
        for it in range(maxit):
            w = A @ v
            n = w.norm()
            if n < 1e-8: lam = torch.zeros(()); break
            w = w / n
            done = (w - v).abs().max() < tol or (w + v).abs().max() < tol
            v = w
            if done: lam = v @ A @ v; break
        else:
            raise ArithmeticError('no convergence', it + 1, v)
        found.append((lam, v * (1 if v[v.abs().argmax()] > 0 else -1), it > 0))
        A -= lam * torch.outer(v, v)
    return found

class PCA:
    def __init__(self, k, /, *, whiten=False): self.k, self.whiten = k, whiten
    def fit(self, X):
        self.mean = X.mean(0, keepdim=True)
        C = (X - self.mean).T @ (X - self.mean) / max(len(X) - 1, 1)
        self.vals, self.vecs, self.moved = map(list, zip(*power_iter(C, self.k)))
        return self
    def transform(self, X):
        Z = (X - self.mean) @ torch.stack(self.vecs, 1)
        return Z / torch.stack(self.vals).clamp(min=1e-6).sqrt() if self.whiten else Z
    def inverse(self, Z): return Z @ torch.stack(self.vecs) + self.mean
    fit_transform = lambda self, X: self.fit(X).transform(X)

def program(X, k, whiten):
    p = PCA(k, whiten=whiten)
    try: Z = p.fit_transform(X)
    except ArithmeticError as e: msg, n, v = e.args; print(msg); return msg, n, v.shape
    except (ValueError, RuntimeError, IndexError) as e: return type(e).__name__, X.sum(), hasattr(p, 'vals'), hasattr(p, 'mean')
    err = None if whiten else (p.inverse(Z) - X).abs().max() < 1e-3
    ratio = torch.stack(p.vals) / X.var(0).sum()
    try: PCA(k=2)
    except TypeError as e: msg = str(e)
    return torch.round(Z, decimals=2) + 0., err, torch.round(ratio, decimals=3), p.moved, msg, [round(float(v), 3) for v in p.vals]

CALLS = ["(torch.tensor([[1.,2],[2,4.1],[3,6],[4,7.9]]), 1, False)", "(torch.tensor([[1.,0,0],[0,2.,0],[0,0,4],[1,1,1]]), 2, True)", "(torch.zeros(3,2), 2, False)", "(torch.ones(2,2), 0, False)", "(torch.tensor([[1,2],[3,4]]), 1, False)"]
