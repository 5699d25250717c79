import torch
from itertools import groupby, accumulate, pairwise, zip_longest

def rle(mask):
    return [(k, len(list(g))) for k, g in groupby(mask.flatten().tolist())]

def unrle(runs, shape):
    return torch.cat([torch.full((n,), v) for v, n in runs]).reshape(shape)

def components(mask):
    labels = torch.zeros(mask.shape, dtype=torch.int)
    current = 0
    for y, x in mask.nonzero().tolist():
        if labels[y, x]: continue
        current += 1
        stack = [(y, x)]
        while stack:
            i, j = stack.pop()
            if not (0 <= i < mask.shape[0] and 0 <= j < mask.shape[1]): continue
            if not mask[i, j] or labels[i, j]: continue
            labels[i, j] = current
            stack += [(i+1, j), (i-1, j), (i, j+1), (i, j-1)]
    return labels, current

def program(img, th):
    mask = img > th
    runs = rle(mask)
    back = unrle(runs, mask.shape)
    ends = list(accumulate(n for _, n in runs))
    labels, n = components(mask)
    sizes = labels.flatten().bincount(minlength=n + 1)[1:]
    gaps = [b - a for a, b in pairwise(ends)]
    if n > 1: print(n, 'components')
    cents = {i: (labels == i).nonzero().float().mean(0) for i in range(1, n + 1)}
    return runs, torch.equal(back, mask), labels, sizes, gaps, cents, list(zip_longest(ends, gaps, fillvalue=-1))

CALLS = ["(torch.tensor([[1.,0,1],[1,0,1],[0,0,0]]), .5)", "(torch.tensor([[1.,0,1],[1,0,1],[0,0,0]]), -1)", "(torch.arange(6).reshape(2,3), 2)", "(torch.zeros(2,2), 1)", "(torch.zeros(0,2), 1)"]
