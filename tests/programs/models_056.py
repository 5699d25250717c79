import torch, difflib, textwrap
from functools import cache
def edit(a, b, sub=1.):
    d = torch.zeros(len(a) + 1, len(b) + 1); d[:, 0] = torch.arange(len(a) + 1); d[0] = torch.arange(len(b) + 1)
    for i, ca in enumerate(a, 1):
        for j, cb in enumerate(b, 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (0 if ca == cb else sub))
    return d
def lcs(a, b):
    @cache
    def f(i, j):
        if not (i and j): return ''
        if a[i - 1] == b[j - 1]: return f(i - 1, j - 1) + a[i - 1]
        return max(f(i - 1, j), f(i, j - 1), key=len)
    r = f(len(a), len(b))
    return r, f.cache_info().currsize
def trace(d):
    i, j = (n - 1 for n in d.shape); ops = []
    while i or j:
        cands = [(d[p, q].item(), o, p, q) for o, p, q in (('=', i - 1, j - 1), ('-', i - 1, j), ('+', i, j - 1)) if p >= 0 and q >= 0]
        v, o, p, q = min(cands)
        ops.append(o if o != '=' or v == d[i, j] else '~'); i, j = p, q
    return ''.join(reversed(ops))
def program(a, b, sub, width):
    d = edit(a, b, sub); dist = d[-1, -1]
    ops = trace(d)
    if dist > 2: print(textwrap.shorten(f'{a} -> {b} by {ops}', 30))
    sm = difflib.SequenceMatcher(None, a, b)
    try: wrapped = textwrap.wrap(a + ' ' + b, width)
    except ValueError as e: wrapped = e.args
    return d, dist, ops, lcs(a, b), sm.get_opcodes(), round(sm.ratio(), 4), wrapped, [*difflib.ndiff([a], [b])]
CALLS = ["('kitten', 'sitting', 1., 5)", "('', 'ab', 1., 0)", "('abc', 'abc', torch.tensor(2.), 3)", "('', '', 1, 4)", "('xy', 'yx', .5, 2)"]
