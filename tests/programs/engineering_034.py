import torch
from operator import itemgetter, attrgetter, methodcaller
from types import SimpleNamespace

def make(i, n):
    return SimpleNamespace(id=i, x=torch.arange(n, dtype=torch.float32) + i, meta={'n': n})

def bin_pack(items, capacity):
    bins = []
    for item in sorted(items, key=lambda it: it.meta['n'], reverse=True):
        for b in bins:
            if b.used + item.meta['n'] <= capacity:
                b.items.append(item)
                b.used += item.meta['n']
                break
        else:
            bins.append(SimpleNamespace(items=[item], used=item.meta['n']))
    return bins

def program(sizes, capacity, threshold):
    items = [make(i, n) for i, n in enumerate(sizes)]
    bins = bin_pack(items, capacity)
    out, seg = [], []
    for b in bins:
        x = torch.cat(list(map(attrgetter('x'), b.items)))
        ids = torch.repeat_interleave(torch.tensor([it.id for it in b.items]), torch.tensor([it.meta['n'] for it in b.items]))
        attn = ids[:, None] == ids[None]
        if attn.float().mean().item() < threshold:
            print('sparse', b.used)
            x = x * attn.sum(1)
        total, *_ = map(methodcaller('sum'), (x, ids))
        b.total = total
        out.append(x)
        seg.append(ids)
    bins.sort(key=lambda b: b.total.item())
    return bins, out, seg, [itemgetter('n')(it.meta) for b in bins for it in b.items], bins[:1] == bins[:1], items[0] == make(0, sizes[0]) if len(sizes[:1]) and sizes[0] == 1 else None

CALLS = ["([3,1,2,4], 5, .6)", "([1,1], 1, .5)", "([], 3, .1)", "([9,2], 4, 2.0)"]
