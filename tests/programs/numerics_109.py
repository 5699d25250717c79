import torch
from functools import cache
@cache
def coords(n):
    lin = torch.linspace(-1, 1, n)
    return torch.stack(torch.meshgrid(lin, lin, indexing='ij'), -1)
class Warp:
    def __init__(self, n): self.n, self.base = n, coords(n)
    def twist(self, a): self.base.mul_(a); return self
    def __call__(self, img): return torch.nn.functional.grid_sample(img[None, None], coords(self.n)[None], align_corners=True)[0, 0]
def program(img, a):
    coords.cache_clear()
    w = Warp(len(img))
    out = w(img)
    if out.sum() > 3: print('sum', out.sum().item())
    out2 = w.twist(a)(img)
    return out, out2, w.base is coords(w.n)
CALLS = ["(torch.eye(2), .5)", "(torch.eye(3), .5)", "(torch.arange(16.).reshape(4,4), .5)", "(torch.ones(1,1), 0.)"]
