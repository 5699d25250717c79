import torch
from collections.abc import MutableMapping
class DOK(MutableMapping):
    def __init__(self, shape, data=()): self.shape, self._d = shape, {}; self.update(data)
    def _chk(self, k):
        i, j = k
        if not (0 <= i < self.shape[0] and 0 <= j < self.shape[1]): raise IndexError(k)
        return i, j
    def __getitem__(self, k): return self._d.get(self._chk(k), 0.)
    def __setitem__(self, k, v):
        if v == 0: self._d.pop(self._chk(k), None)
        else: self._d[self._chk(k)] = v
    def __delitem__(self, k): del self._d[k]
    def __iter__(self): return iter(sorted(self._d))
    def __len__(self): return len(self._d)
    def __matmul__(self, x):
        if isinstance(x, DOK): 
            out = DOK((self.shape[0], x.shape[1]))
            for (i, k), a in self.items():
                for (k2, j), b in x.items():
                    if k == k2: out[i, j] += a * b
            return out
        y = torch.zeros(self.shape[0], *x.shape[1:])
        for (i, j), v in self._d.items(): y[i] += v * x[j]
        return y
    @property
    def T(self): return DOK(self.shape[::-1], {(j, i): v for (i, j), v in self.items()})
def cg(A, b, n):
    x = torch.zeros_like(b); r = b - A @ x; p = r.clone(); rs = r @ r
    for k in range(n):
        if rs < 1e-8: return x, k
        Ap = A @ p; a = rs / (p @ Ap)
        x = x + a * p; r = r - a * Ap; new = r @ r
        p, rs = r + new / rs * p, new
    return x, n
def program(shape, data, b):
    A = DOK(shape)
    try: A.update(data)
    except IndexError as e: print('bad', e.args); return dict(A), e.args
    N = A.T @ A
    try: x, k = cg(N, A.T @ b, 6)
    except RuntimeError as e: return 'size', len(N)
    return x, k, dict(N), (0, 0) in A, A.pop((9, 9), 'dflt') if shape[0] > 9 else A.get((0, 0)), N == N.T, [v for v in A.values()]
CALLS = ["((2,2), {(0,0):2.,(1,1):3.,(0,1):1.}, torch.tensor([1.,2.]))", "((3,2), {(0,0):1.,(2,1):-1.,(1,1):0}, torch.ones(3))", "((1,1), {(0,0):1.,(5,5):2.}, torch.ones(1))", "((2,3), {}, torch.ones(2))", "((2,2), {(0,0):torch.tensor(2.),(1,0):torch.tensor(0.)}, torch.ones(2))"]
