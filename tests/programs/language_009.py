import torch
import heapq
from itertools import count
from math import inf

class Graph:
    def __init__(self):
        self.adj = {}
        self._c = count()
    def add(self, u, v, w):
        self.adj.setdefault(u, []).append((v, w))
        self.adj.setdefault(v, [])
    def __contains__(self, u): return u in self.adj
    def __iter__(self): return iter(self.adj)
    def __len__(self): return len(self.adj)

    def dijkstra(self, src):
        dist = {u: inf for u in self}
        prev, seen = {}, set()
        dist[src] = 0
        q = [(0, next(self._c), src)]
        while q:
            d, _, u = heapq.heappop(q)
            if u in seen: continue
            seen.add(u)
            for v, w in self.adj[u]:
                if (nd := d + w) < dist[v]:
                    dist[v], prev[v] = nd, u
                    heapq.heappush(q, (nd, next(self._c), v))
        return dist, prev

    @staticmethod
    def path(prev, t):
        out = [t]
        while (t := prev.get(t)) is not None:
            out.append(t)
        return out[::-1]

def program(weights, names, src):
    g = Graph()
    n = weights.shape[0]
    soft = torch.nn.functional.softplus(weights)
    for i in range(n):
        for j in range(n):
            if i != j and weights[i, j] > 0:
                g.add(names[i], names[j], soft[i, j].item())
    if src not in g:
        print('missing', src)
        return len(g), soft.sum()
    dist, prev = g.dijkstra(src)
    d = torch.tensor([dist.get(k, inf) for k in names])
    far = max((k for k in dist if dist[k] < inf), key=dist.__getitem__)
    reach = torch.isfinite(d)
    return d, reach.sum().item(), g.path(prev, far), torch.where(reach, d, -torch.ones_like(d)), list(g), next(g._c)

CALLS = ["(torch.tensor([[0, 1., -1], [0, 0, 2.], [1, 0, 0]]), 'abc', 'a')", "(torch.arange(16.).reshape(4, 4).sin(), ['w', 'x', 'y', 'z'], 'x')",
 "(torch.zeros(2, 2), 'ab', 'a')", "(torch.ones(3, 3), (1, 2, 3), 2)", "(torch.ones(3, 3), 'ab', 'a')"]
