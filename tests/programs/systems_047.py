import torch
from collections import defaultdict

class Graph:
    def __init__(self, edges=()):
        self.adj, self.ids = defaultdict(set), {}
        for a, b, *w in edges: self.link(a, b)
    def node(self, n): return self.ids.setdefault(n, len(self.ids))
    def link(self, a, b): self.adj[self.node(a)].add(self.node(b)); return self
    def __len__(self): return len(self.ids)
    def matrix(self):
        M = torch.zeros(len(self), len(self))
        for a, bs in self.adj.items():
            if bs: M[sorted(bs), a] = 1 / len(bs)
        return M
    def names(self): return [n for n, _ in sorted(self.ids.items(), key=lambda kv: kv[1])]
    def scc(self):
        idx, low, stack, on, out, c = {}, {}, [], set(), [], 0
        def go(v):
            nonlocal c
            idx[v] = low[v] = c; c += 1; stack.append(v); on.add(v)
            for w in sorted(self.adj.get(v, ())):
                if w not in idx: go(w); low[v] = min(low[v], low[w])
                elif w in on: low[v] = min(low[v], idx[w])
            if low[v] == idx[v]:
                comp = []
                while True:
                    w = stack.pop(); on.discard(w); comp.append(w)
                    if w == v: break
                out.append(sorted(comp))
        for v in range(len(self)):
            if v not in idx: go(v)
        return out

def pagerank(g, d=0.85, tol=1e-4):
    n = len(g)
    if not n: raise ValueError('empty graph')
    M = g.matrix(); dangling = M.sum(0) == 0
    r, it = torch.full((n,), 1 / n), 0
    while True:
        new = (1 - d) / n + d * (M @ r + r[dangling].sum() / n)
        it += 1
        delta = (new - r).abs().sum(); r = new
        if delta < tol or it >= 50: return r, it
        if it == 5: print('still', len(r))

def program(edges, d):
    g = Graph(edges)
    try: r, it = pagerank(g, d)
    except ValueError as e: return str(e), torch.tensor(d) * 2, g.scc()
    rank = sorted(zip(g.names(), r.tolist()), key=lambda p: (-round(p[1], 4), p[0]))
    hubs = g.matrix().sum(1)
    return [f'{n!s:<5}{v:7.4f}' for n, v in rank], it <= 50, r.sum(), g.scc(), hubs, g.link('new', rank[0][0]) is g, len(g), g.ids

CALLS = ["([('a','b'),('b','c'),('c','a'),('d','a', 5)], .85)", "([], .5)", "([(1,1)], .85)", "([(1,2),(2,3),(3,2),((1,2),1)], 0.5)", "([('x',)], .1)"]
