import torch
from collections import defaultdict
class Graph:
    def __init__(self, edges, directed=True):
        self.adj = defaultdict(dict); self.ids = {}
        for a, b, *w in edges:
            self[a, b] = w[0] if w else 1.
            if not directed: self[b, a] = self.adj[a][b]
    def _id(self, n): return self.ids.setdefault(n, len(self.ids))
    def __setitem__(self, ab, w): a, b = ab; self._id(a), self._id(b); self.adj[a][b] = w
    def matrix(self):
        m = torch.zeros(len(self.ids), len(self.ids))
        for a, nb in self.adj.items():
            for b, w in nb.items(): m[self.ids[b], self.ids[a]] = w
        return m
    def __reversed__(self): return Graph([(b, a, w) for a, nb in self.adj.items() for b, w in nb.items()])
def pagerank(g, d=.85, tol=1e-4):
    M = g.matrix(); n = len(M)
    if not n: raise ValueError('empty graph')
    out = M.sum(0); M = torch.where(out > 0, M / out, torch.tensor(1 / n))
    r = torch.full((n,), 1 / n)
    for it in range(100):
        new = d * M @ r + (1 - d) / n
        delta = (new - r).abs().sum(); r = new
        if delta < tol: break
    else: print('not converged')
    return dict(zip(g.ids, r.tolist())), it, r
def program(edges, directed, d):
    g = Graph(edges, directed)
    try: ranks, it, r = pagerank(g, d)
    except ValueError as e: return e.args, reversed(g).matrix()
    back = reversed(g)
    top = sorted(ranks, key=ranks.get, reverse=True)[:2]
    sinks = [n for n in g.ids if not g.adj[n]]
    print(top, it)
    return top, it, r, sinks, back.matrix(), list(back.ids), len(g.adj), {k: dict(v) for k, v in g.adj.items()}
CALLS = ["([('a','b'),('b','c'),('c','a'),('a','c',2.)], True, .85)", "([(1,2),(3,2)], False, .5)", "([], True, .85)", "([('x','x')], True, 1.)", "([(0,1),(1,0)], True, torch.tensor(1.5))"]
