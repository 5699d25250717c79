import torch
from itertools import groupby, accumulate, chain, islice, cycle, zip_longest, pairwise, compress, takewhile, starmap
from operator import itemgetter, attrgetter, methodcaller

def bucket(seqs, width):
    key = lambda s: -(-len(s) // width)
    for k, g in groupby(sorted(seqs, key=len), key):
        g = list(g)
        L = k * width
        yield k, torch.stack([torch.nn.functional.pad(s, (0, L - len(s)), value=-1) for s in g]) if L else torch.empty(len(g), 0)

def interleave(*its):
    nexts = cycle(iter(it).__next__ for it in its)
    active = len(its)
    while active:
        try:
            for n in nexts: yield n()
        except StopIteration:
            active -= 1
            nexts = cycle(islice(nexts, active))

def program(seqs, width):
    buckets = dict(bucket(seqs, width))
    cums = list(accumulate((s.sum() for s in seqs), torch.maximum))
    diffs = [b - a for a, b in pairwise(cums)]
    prefix = list(takewhile(lambda t: t < 10, cums))
    mixed = torch.stack(list(interleave(*[s.unbind(0) for s in seqs]))) if any(map(len, seqs)) else None
    if mixed is not None and (mixed.diff() < 0).any():
        print('not sorted', mixed.argsort(stable=True).tolist())
    cols = [sum(c) for c in zip_longest(*seqs, fillvalue=torch.tensor(0.))]
    big = list(compress(seqs, (len(s) > width for s in seqs)))
    stats = list(map(attrgetter('shape', 'dtype'), big)), list(map(methodcaller('amax', 0), big))
    first = itemgetter(0)
    try:
        heads = [first(s) for s in seqs]
    except IndexError as e:
        heads = str(e)
    prods = list(starmap(torch.dot, ((s, s) for s in seqs)))
    flat = torch.tensor([*chain.from_iterable(s.tolist() for s in seqs)])
    it = iter(seqs)
    paired = list(zip(it, it))
    return buckets, cums, diffs, len(prefix), mixed, cols, stats, heads, prods, flat, len(paired), [a is seqs[0] for a, _ in paired], next(it, 'end')

CALLS = ["([torch.arange(3.), torch.ones(1), torch.arange(5.)], 2)", "([torch.arange(4.), torch.zeros(0)], 3)", "([], 2)", "([torch.ones(2)]*3, 1)", "([torch.ones(2)], 0)"]
