import torch
import torch.nn.functional as F

class Quat:
    __match_args__ = ('w', 'v')
    def __init__(self, w, v): self.w, self.v = w, v
    def __mul__(self, o):
        match o:
            case Quat(w, v):
                return Quat(self.w * w - self.v @ v, self.w * v + w * self.v + torch.linalg.cross(self.v, v))
            case torch.Tensor() if o.shape[-1:] == (3,):
                return torch.stack([(self * Quat(0., p) * self.conj).v for p in o.reshape(-1, 3)]).reshape(o.shape)
            case int() | float():
                return Quat(self.w * o, self.v * o)
        return NotImplemented
    @property
    def conj(self): return Quat(self.w, -self.v)
    def __abs__(self): return (self.w ** 2 + self.v @ self.v) ** 0.5
    def __truediv__(self, s): return self * (1 / float(s))
    def __pow__(self, n): return self if n == 1 else self * self ** (n - 1)
    def __eq__(self, o): return isinstance(o, Quat) and bool(torch.as_tensor(self.w).isclose(torch.as_tensor(o.w), atol=1e-4)) and torch.allclose(self.v, o.v, atol=1e-4)
    def __iter__(self): yield self.w; yield from self.v
    def __matmul__(self, o): raise TypeError('use *')
    def __getitem__(self, i): return [self.w, *self.v][i]
    def __neg__(self): return Quat(-self.w, -self.v)

def slerp(a, b, t):
    d = a.w * b.w + a.v @ b.v
    if d < 0: print('flip'); b, d = -b, -d
    th = torch.acos(d.clamp(-1, 1))
    if th < 1e-3: return a
    s = torch.sin(th)
    p, q = a * (torch.sin((1 - t) * th) / s).item(), b * (torch.sin(t * th) / s).item()
    return Quat(p.w + q.w, p.v + q.v)

def program(angle, axis, pts):
    q = Quat(torch.cos(angle / 2), F.normalize(axis, dim=0) * torch.sin(angle / 2))
    try: q = q / abs(q)
    except ZeroDivisionError as e: print(e)
    R = q * pts
    back = q.conj * R
    half = slerp(Quat(torch.tensor(1.), torch.zeros(3)), q, .5)
    res = []
    for other in (None, 'x', 2, pts):
        try: r = q * other; res.append(type(r).__name__)
        except TypeError as e: res.append(str(e)[:50])
    try: pts * q
    except TypeError as e: res.append(type(e).__name__)
    try: q @ q
    except TypeError as e: res.append(str(e))
    w, *v = q
    return R, torch.allclose(back, pts, atol=1e-4), half * half == q or half * half == -q, half == q, list(half), res, w, v, (q ** 3)[0], q != half, min(q, key=abs) is w

CALLS = ["(torch.tensor(1.), torch.tensor([0.,0,1]), torch.eye(3))", "(torch.tensor(5.), torch.tensor([1.,1,1]), torch.ones(2,2,3))", "(torch.tensor(0.), torch.zeros(3), torch.ones(1,3))", "(torch.tensor(3.), torch.ones(3), torch.ones(0,3))", "(torch.tensor(3.), torch.ones(3), torch.ones(2))"]
