import torch, heapq
from collections import Counter
from itertools import groupby, count

def rle(s): return ''.join(f'{n if (n := len(list(g))) > 1 else ""}{c}' for c, g in groupby(s))
def unrle(s):
    out, n = [], ''
    for c in s:
        if c.isdigit(): n += c
        else: out.append(c * int(n or 1)); n = ''
    if n: raise ValueError(f'dangling {n}')
    return ''.join(out)

def huffman(s):
    tick = count()
    heap = [(n, next(tick), c) for c, n in sorted(Counter(s).items())]
    heapq.heapify(heap)
    if len(heap) == 1: return {heap[0][2]: '0'}
    while len(heap) > 1:
        (n1, _, a), (n2, _, b) = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (n1 + n2, next(tick), (a, b)))
    codes = {}
    def walk(node, prefix=''):
        match node:
            case (a, b): walk(a, prefix + '0'); walk(b, prefix + '1')
            case str(): codes[node] = prefix
    if heap: walk(heap[0][2])
    return codes

def lzw(s):
    d = {chr(i): i for i in range(128)}; w = ''; out = []
    for c in s:
        if (wc := w + c) in d: w = wc
        else:
            out.append(d[w]); d[wc] = len(d); w = c
    return out + [d[w]] if w else out

def program(s, emb):
    r = rle(s)
    try: back = unrle(r) == s
    except ValueError as e: back = str(e)
    codes = huffman(s)
    bits = ''.join(codes[c] for c in s)
    t = torch.tensor([int(b) for b in bits], dtype=torch.float32)
    p = torch.tensor([n / len(s) for _, n in Counter(s).most_common()]) if s else torch.zeros(0)
    entropy = -(p * p.log2()).sum()
    try:
        z = lzw(s)
        ratio = len(z) / len(s)
    except (KeyError, ZeroDivisionError) as e:
        print('lzw', type(e).__name__, e); z, ratio = [], None
    vec = emb[torch.tensor(z, dtype=torch.long) % len(emb)].sum(0) if z else emb[0]
    return r, back, codes, t.mean() if bits else 'no bits', entropy, z, ratio, vec, bits[:10]

CALLS = ["('aaabbc', torch.eye(3))", "('abracadabra abracadabra', torch.arange(10.).reshape(5,2))", "('', torch.ones(2,2))", "('zzzz', torch.ones(1,1))", "('héé', torch.ones(3,2))", "('11aa', torch.eye(2))"]
