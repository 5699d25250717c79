import torch
from collections import deque, defaultdict

class Graph:
    def __init__(self, edges):
        self.adj = defaultdict(set)
        for a, b in edges:
            self.adj[a].add(b)
            self.adj[b].add(a)
    def __iter__(self):
        return iter(sorted(self.adj))
    def __contains__(self, node): return node in self.adj
    def bfs(self, start):
        seen, queue = {start: 0}, deque([start])
        while queue:
            node = queue.popleft()
            yield node, seen[node]
            for nxt in sorted(self.adj[node]):
                if nxt not in seen:
                    seen[nxt] = seen[node] + 1
                    queue.append(nxt)

def program(edges, x, start):
    g = Graph(edges)
    dist = torch.full((x.shape[0],), -1)
    h = x.clone()
    for node, d in g.bfs(start):
        dist[node] = d
        nb = sorted(g.adj[node])
        msg = h[nb].mean(0)
        if msg.sum() > h[node].sum():
            h[node] = msg
            print('update', node, d)
    reach = (dist >= 0)
    comp = {int(d): torch.nonzero(dist == d).flatten().tolist() for d in dist.unique()}
    return h, dist, reach.float().mean(), comp, list(g), start in g

CALLS = ["([(0,1),(1,2),(3,3)], torch.arange(8.).view(4,2), 0)", "([(0,1),(1,2),(2,0)], -torch.eye(3), 2)", "([], torch.ones(1,1), 0)", "([(0,5)], torch.ones(2,2), 0)"]
