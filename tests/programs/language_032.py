import torch

class Matrix:
    """operator overloading around a tensor"""
    __array_priority__ = 1000
    def __init__(self, t): self.t = t if torch.is_tensor(t) else torch.tensor(t)
    def _un(o): return o.t if isinstance(o, Matrix) else o
    def __add__(self, o): return Matrix(self.t + Matrix._un(o))
    def __radd__(self, o): return Matrix(o + self.t)
    def __imul__(self, o):
        self.t = self.t * Matrix._un(o)
        return self
    def __mul__(self, o):
        if isinstance(o, str): return NotImplemented
        return Matrix(self.t * Matrix._un(o))
    __rmul__ = __mul__
    def __matmul__(self, o): return Matrix(self.t @ Matrix._un(o))
    def __imatmul__(self, o): self.t @= Matrix._un(o); return self
    def __neg__(self): return Matrix(-self.t)
    def __pow__(self, k, mod=None):
        r = torch.linalg.matrix_power(self.t, k)
        return Matrix(r % mod if mod is not None else r)
    def __eq__(self, o): return bool((self.t == Matrix._un(o)).all())
    __hash__ = None
    def __getitem__(self, k): return self.t[k].item() if self.t[k].dim() == 0 else Matrix(self.t[k])
    def __setitem__(self, k, v): self.t[k] = Matrix._un(v)
    def __iter__(self): return (Matrix(r) for r in self.t)
    def __len__(self): return len(self.t)
    def __contains__(self, v): return bool((self.t == v).any())
    def __index__(self): return int(self.t.sum())
    def __round__(self, n=0): return Matrix((self.t * 10 ** n).round() / 10 ** n)
    def __divmod__(self, k): return Matrix(self.t // k), Matrix(self.t % k)
    def __repr__(self): return f'Matrix({self.t.tolist()})'
    def __bool__(self): return self.t.numel() > 0 and bool(self.t.any())
    def __invert__(self): return Matrix(self.t.mT)

def program(x, k):
    m = Matrix(x)
    n = m
    n *= k
    a = 1 + m * 2 + k
    r = [repr(a), m is n, m == n, 3 * m == m * 3]
    try:
        m * 'x'
    except TypeError as e:
        r.append(str(e))
    try:
        hash(m)
    except TypeError as e:
        r.append(str(e))
    try:
        m[0, 0] = 5
        b = ~m @ m
        b @= torch.ones_like(b.t)
        r += [pow(m, 2, 7), round(b, 1), divmod(b, 3), list(range(10))[Matrix([1, 2])]]
    except (IndexError, RuntimeError) as e:
        r.append(type(e).__name__)
        print('shape', tuple(x.shape))
    first, *rest = m if len(m) else [None]
    return r.__repr__(), a.t, x, first is None, len(rest), 5.0 in m, bool(m), not m

CALLS = ["(torch.arange(4.).reshape(2, 2), 2)", "(torch.ones(2, 3), 0)", "(torch.empty(0, 0), 3)", "(torch.arange(9.).reshape(3, 3), torch.tensor(1.5))", "(torch.arange(3), 2)"]
