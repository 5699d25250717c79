import torch
from itertools import product
class UF:
    def __init__(self): self.p = {}
    def find(self, x):
        self.p.setdefault(x, x)
        while (q := self.p[x]) != x: self.p[x] = self.p[q]; x = q
        return x
    def union(self, a, b):
        a, b = self.find(a), self.find(b)
        if a != b: self.p[max(a, b)] = min(a, b)
def label(mask):
    uf = UF(); h, w = mask.shape
    for i, j in product(range(h), range(w)):
        if not mask[i, j]: continue
        uf.find((i, j))
        if i and mask[i - 1, j]: uf.union((i, j), (i - 1, j))
        if j and mask[i, j - 1]: uf.union((i, j), (i, j - 1))
    ids = {}; out = torch.zeros(h, w, dtype=torch.long)
    for c in uf.p: out[c] = ids.setdefault(uf.find(c), len(ids) + 1)
    return out, len(ids)
def equalise(img, bins=8):
    h = torch.histc(img, bins, 0, 1); cdf = h.cumsum(0)
    return (cdf / cdf[-1])[(img * bins).long().clamp(0, bins - 1)], h
def morph(m, op, n=1):
    f = m.float()[None, None]
    for _ in range(n): f = torch.nn.functional.max_pool2d(f, 3, 1, 1) if op == 'dilate' else -torch.nn.functional.max_pool2d(-f, 3, 1, 1)
    return f[0, 0] > 0
def program(img, thr, op):
    eq, h = equalise(img)
    m = eq > thr
    if op: m = morph(m, op)
    lab, n = label(m)
    props = [{'area': a, 'centre': (lab == k).nonzero().float().mean(0)} for k in range(1, n + 1) if (a := (lab == k).sum().item()) > 0]
    print('regions', n, [p['area'] for p in props])
    big = max(props, key=lambda p: p['area'], default={}).get('centre')
    return eq, h, lab, n, props, big, lab.bincount(minlength=n + 2) if hasattr(lab, 'bincount') and lab.ndim == 1 else lab.flatten().bincount()
CALLS = ["(torch.tensor([[0.,.9,.1],[.8,.1,.9],[.0,.2,.95]]), .6, None)", "(torch.rand(5,5,generator=torch.Generator().manual_seed(0)), .7, 'dilate')", "(torch.zeros(3,3), .5, 'erode')", "(torch.zeros(0,4), .5, None)", "(torch.ones(2,2), 2, 'dilate')"]
