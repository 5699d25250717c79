import torch

def power(a, n=50, tol=1e-6):
    v = torch.ones(a.shape[0]) / a.shape[0] ** 0.5
    lam = prev = 0.0
    for i in range(n):
        w = a @ v
        norm = w.norm()
        if norm == 0: return 0.0, v, i
        v = w / norm
        lam = (v @ a @ v).item()
        if abs(lam - prev) < tol * abs(lam): return lam, v, i
        prev = lam
    return lam, v, n

def deflate(a, k):
    a = a.clone()
    for _ in range(k):
        lam, v, i = power(a)
        yield lam, v, i
        a -= lam * torch.outer(v, v)

def gram_schmidt(rows):
    basis = []
    for r in rows:
        w = r - sum((r @ b) * b for b in basis)
        if (n := w.norm()) > 1e-4: basis.append(w / n)
    return basis

def pagerank(adj, d=0.85):
    n = len(adj)
    deg = adj.sum(1, keepdim=True)
    p = torch.where(deg > 0, adj / deg, torch.full_like(adj, 1 / n))
    r = torch.full((n,), 1 / n)
    it = 0
    while True:
        r, old = d * p.T @ r + (1 - d) / n, r
        it += 1
        if torch.allclose(r, old, atol=1e-6) or it == 100: return r, it

def program(a, k):
    eig = [(round(l, 3), v.abs()) for l, v, _ in deflate(a + a.T, k)]
    basis = gram_schmidt(a)
    r, it = pagerank(a.abs())
    print('rank', len(basis), 'top', r.argmax().item())
    return eig, len(basis), r, [round(float(b.sum()), 3) for b in basis]

CALLS = ["(torch.tensor([[2.,1,0],[0,1,0],[1,0,3]]), 2)", "(torch.tensor([[2.,1,0],[0,1,0],[1,0,3]]), 1)", "(torch.zeros(2,2), 2)", "(torch.ones(2,2), 0)", "(torch.ones(2,3), 1)"]
