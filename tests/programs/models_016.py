import torch
from statistics import mean, pstdev
from itertools import groupby, tee, accumulate
def pacing(step, total, lo=.2, kind='linear'):
    match kind, step / max(total, 1):
        case 'linear', f: v = lo + (1 - lo) * f
        case 'root', f: v = (lo * lo + (1 - lo * lo) * f) ** .5
        case ('step', f) if f < .5: v = lo
        case 'step', _: v = 1.
        case other: raise ValueError(f'unknown {other[0]}')
    return min(1.0, v)
def program(x, diff, total, kind):
    order = diff.argsort(stable=True)
    seen, hist, w = set(), [], torch.zeros(x.shape[1])
    for step in range(total):
        try: p = pacing(step, total - 1, kind=kind)
        except ValueError as e:
            return str(e), w
        n = max(1, round(p * len(x)))
        idx = order[:n]
        batch = x[idx]
        new = set(idx.tolist()) - seen
        seen |= new
        hist.append((n, sorted(new)))
        w += .5 * (batch.mean(0) - w)
        if (w.abs() > 2).any(): print('large at', step)
    runs = [(k, len(list(g))) for k, g in groupby(hist, key=lambda h: h[0])]
    a, b = tee(h[0] for h in hist); next(b, None)
    ns = [h[0] for h in hist]
    return w, hist, runs, [q - p for p, q in zip(a, b)], seen, (mean(ns), pstdev(ns)) if ns else None, list(accumulate(ns, max))
CALLS = ["(torch.arange(10.).reshape(5,2), torch.tensor([3.,1,2,5,4]), 4, 'linear')", "(torch.arange(10.).reshape(5,2), torch.zeros(5), 5, 'step')", "(torch.ones(3,1), torch.zeros(3), 3, 'zz')", "(torch.ones(3,1), torch.arange(3), 0, 'root')", "(torch.ones(3,1), torch.arange(3), 6, 'root')"]
