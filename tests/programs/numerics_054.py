import torch

class Vec:
    __slots__ = ('data',)
    def __init__(self, *xs): self.data = torch.tensor(xs, dtype=torch.float) if not isinstance(xs[0], torch.Tensor) else xs[0]
    def __add__(self, o): return Vec(self.data + (o.data if isinstance(o, Vec) else o))
    __radd__ = __add__
    def __mul__(self, k): return self @ k if isinstance(k, Vec) else Vec(self.data * k)
    __rmul__ = __mul__
    def __neg__(self): return -1 * self
    def __sub__(self, o): return self + -o
    def __matmul__(self, o): return (self.data * o.data).sum().item()
    def __abs__(self): return (self @ self) ** 0.5
    def __truediv__(self, k): return self * (1 / k)
    def __eq__(self, o): return isinstance(o, Vec) and bool((self.data == o.data).all())
    def __repr__(self): return 'Vec(' + ', '.join(f'{x:.2f}' for x in self.data.tolist()) + ')'
    def __iter__(self): return iter(self.data.tolist())
    def __round__(self, n=0): return Vec(torch.round(self.data, decimals=n))

def bounce(p, v, normal):
    return v - 2 * (v @ normal) * normal

def program(pos, vel, steps):
    p, v = Vec(*pos), Vec(*vel)
    g = Vec(*([0] * (len(pos) - 1)), -1)
    floor = -g
    trace = []
    for _ in range(steps):
        v += g * 0.1
        p = p + v * 0.5
        if p @ floor < 0:
            v = bounce(p, v, floor) / 1.1
            print('bounce', p)
        trace.append(round(p, 2))
    try:
        v == 3, {v}
    except TypeError as e:
        err = str(e)
    return p.data, v.data, [list(t) for t in trace], repr(v), abs(v), p == p + 0, p != v, err, sum([p, v]).data

CALLS = ["([0,1], [1,0], 4)", "([0,1], [1,0], 4)", "([0,0,.1], [0,1,-2], 3)", "([1], [0], 1)", "([], [], 1)"]
