import torch, itertools
def bucket(lengths, edges):
    key = lambda i: torch.bucketize(torch.tensor(lengths[i]), edges, right=True).item()
    idx = sorted(range(len(lengths)), key=lambda i: (key(i), i))
    return {k: list(g) for k, g in itertools.groupby(idx, key)}
def pad_stack(ts, value=0, side='right'):
    n = max(map(len, ts)); f = torch.nn.functional.pad
    match side:
        case 'right': return torch.stack([f(t, (0, n - len(t)), value=value) for t in ts])
        case 'left': return torch.stack([f(t, (n - len(t), 0), value=value) for t in ts])
        case str() as s if s in ('center', 'centre'):
            return torch.stack([f(t, ((d := n - len(t)) // 2, d - d // 2), value=value) for t in ts])
    raise ValueError(f'side {side!r}')
def chunks(it, n):
    it = iter(it)
    while c := list(itertools.islice(it, n)): yield c
def program(seqs, edges, bs, side):
    ts = [torch.tensor(s, dtype=torch.float) for s in seqs]
    b = bucket([*map(len, ts)], torch.tensor(edges)); waste, out = {}, []
    for k, ids in b.items():
        for c in chunks(ids, bs):
            try: m = pad_stack([ts[i] for i in c], side=side)
            except ValueError as e: print(e); return e.args, k, b
            waste[k] = waste.get(k, 0) + m.numel() - sum(len(ts[i]) for i in c)
            out.append((c, m, m.sum(1).softmax(0)))
    return out, waste, b, [m.is_contiguous() for _, m, _ in out]
CALLS = ["([[1,2],[3],[4,5,6,7],[]], [2,4], 2, 'right')", "([[1],[2,3,4],[5,6]], [], 3, 'centre')", "([], [1], 2, 'left')", "([[1]], [1], 2, 'top')", "([[1],[1,2]], [9], 0, 'left')"]
