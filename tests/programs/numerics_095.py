import torch
from contextlib import contextmanager

class SafeTensor(torch.Tensor):
    @property
    def safe_mean(self): return self.mean() if self.numel() else self.new_zeros(())
    def describe(self): return f'{type(self).__name__}{tuple(self.shape)}'

@contextmanager
def dtype_scope(dt):
    old = torch.get_default_dtype()
    torch.set_default_dtype(dt)
    try: yield old
    finally: torch.set_default_dtype(old)

def integrate(f, a, b, n):
    x = torch.linspace(a, b, n + 1)
    y = f(x)
    return ((y[1:] + y[:-1]) / 2 * x.diff()).sum()

def romberg(f, a, b, tol):
    rows = [[integrate(f, a, b, 1)]]
    for k in range(1, 8):
        row = [integrate(f, a, b, 2 ** k)]
        for j in range(k): row.append(row[j] + (row[j] - rows[-1][j]) / (4 ** (j + 1) - 1))
        rows.append(row)
        if abs(row[-1] - rows[-2][-1]) < tol: break
    return row[-1], rows

def program(name, a, b, tol=1e-6, double=False):
    f = {'sin': torch.sin, 'sq': torch.square, 'inv': torch.reciprocal, 'x': lambda x: x}[name]
    with dtype_scope(torch.float64 if double else torch.float32) as old:
        val, rows = romberg(f, a, b, tol)
        one = torch.tensor(1.0)
    if val.isnan() or val.isinf(): print('bad integral', val.item())
    return val, len(rows), [len(r) for r in rows], one.dtype, old, torch.get_default_dtype(), rows[0]

CALLS = ["('sin', 0, 3.0)", "('sin', 0, 3.0, 1e-9, True)", "('inv', 0, 1)", "('sq', 1, 1)", "('x', 0., 2.)", "('y', 0, 1)"]
