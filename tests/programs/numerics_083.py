import torch
from functools import cached_property

class Graph:
    _intern = {}
    def __new__(cls, n, edges):
        key = n, tuple(sorted(edges))
        if (g := cls._intern.get(key)) is None:
            g = cls._intern[key] = super().__new__(cls)
            g.key = key
        return g
    @cached_property
    def adj(self):
        n, edges = self.key
        a = torch.zeros(n, n)
        for i, j in edges: a[i, j] = a[j, i] = 1
        return a
    @cached_property
    def lap(self): return self.adj.sum(1).diag() - self.adj
    def __len__(self): return self.key[0]
    def bfs(self, s):
        seen, level = {s: 0}, [s]
        while level:
            nxt = []
            for u in level:
                for v in self.adj[u].nonzero().flatten().tolist():
                    if v not in seen: seen[v] = seen[u] + 1; nxt.append(v)
            level = nxt
            yield seen.copy()

def diffuse(g, x, t, steps):
    for _ in range(steps): x = x - t * (g.lap @ x)
    return x

def program(n, edges, x):
    Graph._intern.clear()
    g, h = Graph(n, edges), Graph(n, edges[::-1])
    levels = list(g.bfs(0))
    y = diffuse(h, x, .1, 3)
    if len(levels[-1]) < n: print('disconnected', n - len(levels[-1]))
    lap = g.lap
    del g.lap
    return y, levels, g is h, lap is h.lap, torch.equal(lap, h.lap), g.adj is h.adj, len(Graph._intern), sorted(vars(h))

CALLS = ["(3, [(0,1),(1,2)], torch.tensor([1.,0,0]))", "(3, [(0,1),(1,2)], torch.tensor([1.,0,0]))", "(4, [(0,1)], torch.eye(4))", "(1, [], torch.ones(1))", "(2, [(0,5)], torch.ones(2))", "(0, [], torch.ones(0))"]
