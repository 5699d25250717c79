import torch, random
import numpy as np
def collate(batch, *, rng):
    xs, ys = zip(*batch)
    lam = rng.betavariate(2, 2) if len(xs) > 1 else 1.0
    x = torch.stack(xs)
    perm = torch.tensor(rng.sample(range(len(xs)), len(xs)))
    mixed = lam * x + (1 - lam) * x[perm]
    if mixed.max() > 2: mixed.clamp_(max=2)
    return mixed, [ys[i] for i in perm.tolist()], lam
def program(n, size, seed):
    rng = random.Random(seed); torch.manual_seed(seed); np.random.seed(seed)
    data = [(torch.randn(2) + i, chr(97 + i)) for i in range(n)]
    rng.shuffle(data)
    out = []
    for k in range(0, n, size):
        b = collate(data[k:k + size], rng=rng)
        noise = torch.from_numpy(np.random.rand(2).astype('f4'))
        print(b[2] > .5, b[1])
        out.append((b[0] + noise, *b[1:]))
    return out, torch.rand(1), np.random.randint(9), rng.random()
CALLS = ["(5, 2, 0)", "(1, 3, 1)", "(0, 1, 2)", "(4, 4, 0)"]
