import torch, math
class Quat:
    __slots__ = ('t',)
    def __init__(self, *a): self.t = a[0] if len(a) == 1 and torch.is_tensor(a[0]) else torch.tensor(a, dtype=torch.float64)
    w, x, y, z = (property(lambda s, i=i: s.t[i].item()) for i in range(4))
    def __mul__(self, o):
        if isinstance(o, (int, float)): return Quat(self.t * o)
        if not isinstance(o, Quat): return NotImplemented
        a, b = self.t, o.t
        return Quat(torch.cat([(a[0] * b[0] - a[1:] @ b[1:])[None], a[0] * b[1:] + b[0] * a[1:] + torch.linalg.cross(a[1:], b[1:])]))
    __rmul__ = lambda s, o: s * o
    def __invert__(self): return Quat(self.t * torch.tensor([1, -1, -1, -1]))
    def __abs__(self): return self.t.norm().item()
    def __bool__(self): return abs(self) > 1e-9
    def __eq__(self, o): return isinstance(o, Quat) and torch.allclose(self.t, o.t)
    def __hash__(self): return hash(tuple(round(v, 6) for v in self.t.tolist()))
    def __repr__(self): return 'Q(%s)' % ', '.join(f'{v:+.3f}' for v in (self.w, self.x, self.y, self.z))
    def rotate(self, v): return (self * Quat(0., *v) * ~self).t[1:]
    @classmethod
    def axis(cls, ax, ang): h = ang / 2; return cls(math.cos(h), *(math.sin(h) * c for c in ax))
def slerp(a, b, u):
    d = (a.t @ b.t).clamp(-1, 1)
    if d < 0: b, d = b * -1, -d
    if d > .9995: return Quat(torch.lerp(a.t, b.t, u))
    th = d.acos()
    return Quat((torch.sin((1 - u) * th) * a.t + torch.sin(u * th) * b.t) / th.sin())
def program(ax, angles, v):
    q = Quat(1., 0., 0., 0.); path = []
    for a in angles: q = Quat.axis(ax, a) * q; path.append(q)
    r = q.rotate(v)
    mid = slerp(path[0], path[-1], .5) if path else None
    try: q * 'x'
    except TypeError as e: err = str(e)
    print(mid, bool(Quat(0., 0., 0., 0.)))
    return r, repr(q), repr(mid), err, 2 * q == q * 2, len({q, ~q, ~~q}), abs(q), q in path
CALLS = ["((0.,0.,1.), [.5,.5,-.2], (1.,0.,0.))", "((1.,0.,0.), [], (1.,2.,3.))", "((0.,1.,0.), [3., 3.], [1.,0.,0.])", "((0.,1.,0.), [0.], [1.,0.,0.])"]
