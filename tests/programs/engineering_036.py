import torch
import heapq
from math import inf

def neighbors(W, u):
    row = W[u]
    for v in torch.nonzero(row).flatten().tolist():
        yield v, row[v].item()

def dijkstra(W, src):
    dist, prev = {src: 0.0}, {}
    heap = [(0.0, src)]
    visited = set()
    while heap:
        d, u = heapq.heappop(heap)
        if u in visited:
            continue
        visited |= {u}
        for v, w in neighbors(W, u):
            if w < 0:
                raise ValueError(f'negative edge {u}->{v}: {w:g}')
            if (nd := d + w) < dist.get(v, inf):
                dist[v], prev[v] = nd, u
                heapq.heappush(heap, (nd, v))
    return dist, prev

def path(prev, dst):
    while dst is not None:
        yield dst
        dst = prev.get(dst)

def program(W, src, dst):
    try:
        dist, prev = dijkstra(W, src)
    except ValueError as err:
        print(err)
        dist, prev = dijkstra(W.abs(), src)
        msg = err.args
    else:
        msg = None
    vec = torch.tensor([dist.get(i, inf) for i in range(len(W))])
    route = [*path(prev, dst)][::-1]
    cost = sum(W[a, b] for a, b in zip(route, route[1:]))
    closeness = torch.where(vec.isinf(), torch.zeros(()), 1 / (1 + vec))
    return vec, route, cost, closeness.sum(), msg

CALLS = ["(torch.tensor([[0.,1,4],[0,0,2],[0,0,0]]), 0, 2)", "(torch.tensor([[0.,-1],[3,0]]), 1, 0)", "(torch.zeros(3,3), 1, 1)", "(torch.ones(4,4).triu(1), 0, 3)"]
