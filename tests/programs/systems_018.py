import torch
from typing import NamedTuple
import math

class P(NamedTuple):
    x: float
    y: float = 0.0
    def __sub__(self, o): return P(self.x - o.x, self.y - o.y)
    def cross(self, o): return self.x * o.y - self.y * o.x
    @property
    def norm(self): return math.hypot(*self)

def hull(pts):
    pts = sorted(set(pts))
    if len(pts) < 3: return pts
    def half(points):
        out = []
        for p in points:
            while len(out) >= 2 and (out[-1] - out[-2]).cross(p - out[-2]) <= 0: out.pop()
            out.append(p)
        return out[:-1]
    return half(pts) + half(reversed(pts))

class Polygon:
    def __init__(self, pts): self.pts = list(pts)
    def __len__(self): return len(self.pts)
    def edges(self):
        n = len(self)
        return [(self.pts[i], self.pts[(i + 1) % n]) for i in range(n)]
    @property
    def area(self): return sum(a.cross(b) for a, b in self.edges()) / 2
    perimeter = property(lambda self: sum((b - a).norm for a, b in self.edges()))
    def __contains__(self, p):
        inside = False
        for a, b in self.edges():
            if (a.y > p.y) != (b.y > p.y) and p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x:
                inside = not inside
        return inside
    def tensor(self): return torch.tensor([list(p) for p in self.pts]).reshape(-1, 2)

def program(t, probe):
    try:
        pts = [P(*row) for row in t.tolist()]
    except TypeError as e:
        print('bad row:', e); return None, t.shape, str(e).split('(')[0]
    poly = Polygon(hull(pts))
    T = poly.tensor()
    ang = torch.tensor(0.5)
    R = torch.stack([torch.stack([ang.cos(), -ang.sin()]), torch.stack([ang.sin(), ang.cos()])])
    rot = T @ R.T if len(poly) else T
    a2 = (T[:, 0] * T[:, 1].roll(-1) - T[:, 1] * T[:, 0].roll(-1)).sum() / 2
    return poly.pts, round(poly.area, 4), round(poly.perimeter, 4), rot, a2, [P(*q) in poly for q in probe], P(1) == (1, 0.0), P(3)._asdict()

CALLS = ["(torch.tensor([[0.,0],[2,0],[1,1],[2,2],[0,2],[0,0]]), [(1,.5),(3,3)])", "(torch.zeros(0,2), [(0,0)])", "(torch.ones(2,3), [])", "(torch.tensor([[0.,0],[1,1],[2,2]]), [(1,1)])", "(torch.arange(3.)[:,None], [(0.,)])", "(torch.tensor([[0,0],[4,0],[0,3]]), [(1,1),(3,3)])"]
