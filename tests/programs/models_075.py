import torch
class Matrix:
    def __init__(self, rows): self.t = rows if torch.is_tensor(rows) else torch.tensor(rows, dtype=torch.float64)
    def __getitem__(self, ij): return Matrix(self.t[ij]) if self.t[ij].ndim == 2 else self.t[ij]
    def __imatmul__(self, o): self.t = self.t @ o.t; return self
    def __iadd__(self, o): self.t += o.t if isinstance(o, Matrix) else o; return self
    def __pow__(self, n, mod=None):
        out, b = Matrix(torch.eye(len(self.t), dtype=torch.float64)), Matrix(self.t)
        while n:
            if n & 1: out @= b
            b @= b; n >>= 1
            if mod: out.t %= mod; b.t %= mod
        return out
    def __index__(self): return int(self.t.sum())
    def __len__(self): return len(self.t)
    def __contains__(self, v): return v in self.t
    def lu(self):
        n = len(self); a = self.t.clone(); perm = list(range(n)); sign = 1
        for k in range(n):
            p = a[k:, k].abs().argmax().item() + k
            if a[p, k] == 0: raise ArithmeticError(f'singular at {k}')
            if p != k: a[[k, p]] = a[[p, k]]; perm[k], perm[p] = perm[p], perm[k]; sign = -sign
            a[k + 1:, k] /= a[k, k]; a[k + 1:, k + 1:] -= torch.outer(a[k + 1:, k], a[k, k + 1:])
        return a, perm, sign
    @property
    def det(self): a, _, s = self.lu(); return s * a.diag().prod().item()
def program(rows, n, mod):
    m = Matrix(rows); alias = m; base = m.t
    try: d = m.det
    except ArithmeticError as e: d = str(e); print(d)
    except (RuntimeError, IndexError) as e: return type(e).__name__
    f = pow(m, n, mod); g = m ** 2
    m += 1
    m @= m
    return d, f.t, g.t, m is alias, base, m.t is base, list(range(3))[Matrix([[1.]])], 'abc'[Matrix([[0., 1.], [0., 0.]]):], 1.0 in f, m[0], type(m[:1]).__name__, bool(m)
CALLS = ["([[1.,1.],[1.,0.]], 10, None)", "([[1,1],[1,0]], 30, 7)", "([[0.,0.],[0.,1.]], 0, None)", "([[2.,1.,0.],[0.,3.,1.],[1.,0.,1.]], 3, 5)", "([], 1, None)"]
