import torch, math
from numbers import Number

class Sparse(dict):
    __slots__ = ()
    def __missing__(self, k): return 0.0
    @classmethod
    def of(cls, t, eps=1e-9): return cls((tuple(i), t[tuple(i)].item()) for i in t.nonzero().tolist() if abs(t[tuple(i)]) > eps)
    def __add__(self, o):
        if not isinstance(o, Sparse): return NotImplemented
        return Sparse({k: v for k in self.keys() | o.keys() if (v := self[k] + o[k])})
    def __mul__(self, s): return Sparse({k: v * s for k, v in self.items()}) if isinstance(s, Number) else NotImplemented
    __rmul__ = __mul__
    def __matmul__(self, o):
        if isinstance(o, torch.Tensor): return sum((v * o[k] for k, v in sorted(self.items())), torch.zeros(()))
        small, big = sorted((self, o), key=len)
        return math.fsum(v * big[k] for k, v in small.items())
    def __neg__(self): return -1 * self
    def __pos__(self): return type(self)(self)
    def __abs__(self): return math.sqrt(self @ self)
    def dense(self, *shape):
        t = torch.zeros(shape)
        for k, v in self.items():
            t[k] = v
        return t
    def top(self, n=1): return sorted(self.items(), key=lambda kv: (-abs(kv[1]), kv[0]))[:n]

def program(a, b, k):
    A, B = Sparse.of(a), Sparse.of(b)
    out = {'dot': A @ B, 'abs': round(abs(A), 4), 'nnz': len(A + B), 'top': A.top(2)}
    for name, f in {'scale': lambda: (A * k).dense(*a.shape), 'bad': lambda: A + 1, 'bad2': lambda: A * 'x', 'sum': lambda: (A + -B).dense(*a.shape), 'mat': lambda: A @ b}.items():
        try: out[name] = f()
        except TypeError as e: out[name] = str(e)
        except IndexError as e: out[name] = 'IndexError'; print(name, 'out of range')
    cos = out['dot'] / (abs(A) * abs(B)) if A and B else float('nan')
    out['cos'] = f'{cos:+.3f}'
    A |= {(0,) * a.dim(): 9}
    A[99] ; A.setdefault(98, 1.5)
    return out, sorted(map(str, A)), type(+A).__name__, type(A | B).__name__, type(A.copy()).__name__, A == dict(A), 99 in A, bool(Sparse())

CALLS = ["(torch.tensor([1.,0,2]), torch.tensor([0.,3,4]), 2)", "(torch.zeros(2,2), torch.eye(2), 1.5)", "(torch.eye(3), torch.ones(2,2), torch.tensor(2.))", "(torch.tensor([5,-1]), torch.tensor([1,1]), True)", "(torch.tensor(3.), torch.tensor(2.), 1)"]
