import torch
import numpy as np
from bisect import bisect_right, insort

class Histogram:
    def __init__(self, edges):
        self.edges = np.asarray(edges, dtype=np.float64)
        self.counts = np.zeros(len(edges) - 1, dtype=int)
        self.under = self.over = 0
    def fill(self, x):
        arr = x.numpy() if isinstance(x, torch.Tensor) else np.asarray(x)
        self.under += int((arr < self.edges[0]).sum())
        self.over += int((arr >= self.edges[-1]).sum())
        self.counts += np.histogram(arr[(arr >= self.edges[0]) & (arr < self.edges[-1])], self.edges)[0]
    def __getitem__(self, v):
        i = bisect_right(self.edges.tolist(), v) - 1
        if not 0 <= i < len(self.counts):
            raise IndexError(v)
        return self.counts[i]
    def density(self):
        w = np.diff(self.edges)
        return torch.from_numpy(self.counts / (w * max(1, self.counts.sum())))

def program(x, edges, probes):
    h = Histogram(edges)
    h.fill(x)
    h.fill((x * 2).tolist())
    order = []
    for v in x.flatten().tolist():
        insort(order, v)
    found = []
    for p in probes:
        try:
            found.append(h[p])
        except IndexError as e:
            found.append(repr(e))
    entropy = -(lambda d: (d[d > 0] * d[d > 0].log()).sum())(h.density())
    hist = torch.histc(x.float(), bins=3, min=float(edges[0]), max=float(edges[-1]))
    if h.over > h.under:
        print('skewed', h.over)
    return h.counts, h.density(), found, order, entropy, hist, (h.under, h.over), found[0].__class__.__name__

CALLS = ["(torch.arange(5.), [0,1,3,4], [0.5,2,7])", "(torch.arange(5.), [0,1,3,4], [0.5,2,7])", "(torch.arange(-3,3), [-1.5,0,1], [-1])", "(torch.zeros(0), [0,1], [0])", "(torch.ones(2), [0,1], [])"]
