import torch
def propagate(adj, labels, iters=10, alpha=.9):
    n = len(adj); k = int(labels.max()) + 1 if (labels >= 0).any() else 0
    if k == 0: return labels, 0
    deg = adj.sum(1).clamp(min=1); S = adj / (deg[:, None] * deg[None]).sqrt()
    Y = torch.zeros(n, k); known = labels >= 0
    Y[known, labels[known]] = 1
    F = Y.clone()
    for i in range(iters):
        F, old = alpha * S @ F + (1 - alpha) * Y, F
        if torch.equal(F.argmax(1), old.argmax(1)): break
    return F.argmax(1).where(F.sum(1) > 0, torch.tensor(-1)), i + 1
def walks(adj, seed, length, per):
    g = torch.Generator().manual_seed(seed)
    for v in range(len(adj)):
        for _ in range(per):
            path, cur = [v], v
            while len(path) < length:
                p = adj[cur]
                if not p.any(): break
                cur = torch.multinomial(p, 1, generator=g).item(); path.append(cur)
            yield path
def skipgrams(paths, window):
    return [(c, p[j]) for p in paths for i, c in enumerate(p) for j in range(max(0, i - window), min(len(p), i + window + 1)) if i != j]
def program(edges, n, labels):
    adj = torch.zeros(n, n)
    for a, b in edges:
        try: adj[a, b] = adj[b, a] = 1
        except IndexError as e: print('skip', a, b)
    lab, it = propagate(adj, labels)
    ws = [*walks(adj, 3, 4, 2)]
    pairs = skipgrams(ws, 1)
    co = torch.zeros(n, n).index_put_(tuple(torch.tensor(pairs).T), torch.ones(len(pairs)), accumulate=True) if pairs else None
    return lab, it, ws, len(pairs), co, [w for w in ws if len(w) == 1], lab is labels
CALLS = ["([(0,1),(1,2),(3,4)], 5, torch.tensor([0,-1,-1,1,-1]))", "([], 2, torch.tensor([-1,-1]))", "([(0,9),(0,1)], 3, torch.tensor([2,-1,0]))", "([], 0, torch.zeros(0,dtype=torch.long))"]
