import torch, bisect, hashlib

class Bloom:
    def __init__(self, m=64, k=3): self.m, self.k, self.bits, self.n = m, k, torch.zeros(m, dtype=torch.bool), 0
    def _idx(self, item):
        data = item if isinstance(item, bytes) else repr(item).encode()
        h = hashlib.md5(data).digest()
        a, b = (int.from_bytes(h[i:i + 8], 'little') for i in (0, 8))
        return [(a + i * b) % self.m for i in range(self.k)]
    def __ior__(self, o):
        if isinstance(o, Bloom):
            if o.m != self.m: raise ValueError(f'{o.m} != {self.m}')
            self.bits |= o.bits; self.n += o.n
        else: self.bits[self._idx(o)] = True; self.n += 1
        return self
    def __contains__(self, x): return bool(self.bits[self._idx(x)].all())
    def __len__(self): return self.n
    @property
    def fill(self): return self.bits.float().mean()

class Ring:
    def __init__(self, nodes, v=3):
        self.keys, self.map, self.v = [], {}, v
        for n in nodes: self += n
    def h(self, s): return int(hashlib.sha1(s.encode()).hexdigest()[:6], 16)
    def __iadd__(self, node):
        for i in range(self.v):
            k = self.h(f'{node}#{i}'); bisect.insort(self.keys, k); self.map[k] = node
        return self
    def __isub__(self, node):
        for k in [k for k, n in self.map.items() if n == node]:
            del self.map[k]; self.keys.pop(bisect.bisect_left(self.keys, k))
        return self
    def __call__(self, key):
        if not self.keys: raise LookupError('empty ring')
        return self.map[self.keys[bisect.bisect(self.keys, self.h(str(key))) % len(self.keys)]]

def program(items, nodes, load):
    b = Bloom(); old = b
    for it in items: b |= it
    c = Bloom(); c |= b
    errs = []
    try: c |= Bloom(32)
    except ValueError as e: errs.append(str(e))
    fp = [x for x in range(40) if x in b]
    r = Ring(nodes)
    where = {}
    for it, l in zip(items, load):
        try: where[r(it)] = where.get(r(it), 0) + l
        except LookupError as e: print(e); errs.append(e)
    if nodes:
        before = [r(i) for i in range(12)]
        r -= nodes[0]; r += 'fresh'
        moved = sum(a != r(i) for i, a in enumerate(before))
    else: moved = None
    return b.bits, b.fill, fp, where, moved, errs, b is old, len(c), bool(Bloom()), torch.tensor(sorted(r.keys)).diff()[:3], [i in c for i in items]

CALLS = ["(['a', 3, (1,2), b'x'], ['n1','n2','n3'], torch.arange(4.))", "([], ['n'], torch.ones(1))", "([1,2], [], torch.ones(2))", "(list(range(12)), ['p','q'], torch.arange(12))"]
