import torch
def sdf_circle(c, r): return lambda p: (p - torch.tensor(c)).norm(dim=-1) - r
def sdf_box(c, h):
    def f(p):
        q = (p - torch.tensor(c)).abs() - torch.tensor(h)
        return q.clamp(min=0).norm(dim=-1) + q.max(-1).values.clamp(max=0)
    return f
class Shape:
    def __init__(self, f, name): self.f, self.name = f, name
    def __call__(self, p): return self.f(p)
    def __or__(self, o): return Shape(lambda p: torch.minimum(self(p), o(p)), f'({self.name}|{o.name})')
    def __and__(self, o): return Shape(lambda p: torch.maximum(self(p), o(p)), f'({self.name}&{o.name})')
    def __invert__(self): return Shape(lambda p: -self(p), f'~{self.name}')
    def __sub__(self, o): return self & ~o
    def __ior__(self, o): self.f = (lambda f: lambda p: torch.minimum(f(p), o(p)))(self.f); self.name += '+' + o.name; return self
    def __contains__(self, p): return self(torch.as_tensor(p, dtype=torch.float)) <= 0
def march(s, o, d, n=12):
    t = torch.zeros(len(o)); alive = torch.ones(len(o), dtype=torch.bool); k = 0
    while alive.any() and k < n:
        dist = s(o + t[:, None] * d); t = torch.where(alive, t + dist, t); alive = alive & (dist > 1e-2) & (t < 10); k += 1
    return t, alive, k
def render(s, n):
    g = torch.stack(torch.meshgrid(torch.linspace(-1, 1, n), torch.linspace(-1, 1, n), indexing='xy'), -1)
    return '\n'.join(''.join('.#'[v] for v in row) for row in (s(g) <= 0).tolist())
def program(c, r, n, o):
    a, b = Shape(sdf_circle(c, r), 'c'), Shape(sdf_box((0., 0.), (.5, .3)), 'b')
    u, dif = a | b, b - a; ref = a
    pic = render(dif, n); print(pic)
    a |= ~b
    d = torch.tensor([1., 0.]).expand(len(o), 2)
    t, alive, k = march(u, o, d)
    p = o.clone().requires_grad_(); gr = torch.autograd.grad(b(p).sum(), p)[0] if len(o) else None
    return pic, u.name, dif.name, a.name, a is ref, t, alive, k, gr, (0., 0.) in b, [9, 9] in b, (0., 0.) in ~b
CALLS = ["((.5,0.), .3, 7, torch.tensor([[-2.,0.],[-2.,2.]]))", "((0.,0.), 0., 3, torch.tensor([[0.,0.]]))", "((0.,1.), 1., 0, torch.zeros(0,2))", "((-.2,.1), torch.tensor(.4), 4, torch.ones(1,2))"]
