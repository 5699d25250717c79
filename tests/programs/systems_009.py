import torch
from fractions import Fraction

class Matrix:
    def __init__(self, rows): self.rows = [list(r) for r in rows]
    @classmethod
    def eye(cls, n, one=1): return cls([[one if i == j else one * 0 for j in range(n)] for i in range(n)])
    @property
    def shape(self): return len(self.rows), len(self.rows[0]) if self.rows else 0
    def __getitem__(self, ij):
        match ij:
            case (slice() as a, slice() as b): return Matrix([r[b] for r in self.rows[a]])
            case (int(i), int(j)): return self.rows[i][j]
            case int(i): return tuple(self.rows[i])
            case _: raise TypeError(f'bad index {ij!r}')
    def __setitem__(self, ij, v): self.rows[ij[0]][ij[1]] = v
    def __matmul__(self, o):
        if self.shape[1] != o.shape[0]: return NotImplemented
        return Matrix([[sum(a * b for a, b in zip(r, c)) for c in zip(*o.rows)] for r in self.rows])
    def __iter__(self): return (v for r in self.rows for v in r)
    def __pow__(self, n):
        acc, b = Matrix.eye(self.shape[0]), self
        while n:
            if n & 1: acc = acc @ b
            b, n = b @ b, n >> 1
        return acc
    def det(self):
        m, sign, d = [r[:] for r in self.rows], 1, 1
        for i in range(len(m)):
            p = next((k for k in range(i, len(m)) if m[k][i] != 0), None)
            if p is None: return 0
            if p != i: m[i], m[p] = m[p], m[i]; sign = -sign
            d *= m[i][i]
            for k in range(i + 1, len(m)):
                f = m[k][i] / m[i][i]
                m[k] = [a - f * b for a, b in zip(m[k], m[i])]
        return sign * d
    def __str__(self):
        w = max((len(str(v)) for v in self), default=0)
        return '\n'.join(' '.join(f'{v!s:>{w}}' for v in r) for r in self.rows)

def program(rows, n, x):
    m = Matrix([[Fraction(v) for v in r] for r in rows])
    out = {}
    try: out['pow'] = m ** n
    except TypeError as e: out['pow'] = str(e)
    try: out['det'] = m.det()
    except IndexError as e: out['det'] = f'{e}'
    print(m)
    blocks = Matrix([[x, x + 1], [x * 2, -x]])
    bb = blocks @ blocks
    blocks[0, -1] = None
    try: blocks['a']
    except TypeError as e: out['idx'] = e.args
    t = torch.tensor([[float(v) for v in r] for r in rows])
    out['sub'] = m[0:1, ::-1].rows
    return out.get('pow') and str(out['pow']), out['det'], bb.rows, [v is x for v in blocks], t * float(out['det'] or 0), out

CALLS = ["([[1,2],[3,4]], 3, torch.ones(2))", "([[0,1],[1,0]], 2, torch.arange(3.))", "([[1,2,3],[4,5,6]], 2, torch.ones(1))", "([], 0, torch.zeros(0))", "([['1/3',2],[0.5,'7']], 5, torch.tensor(2))"]
