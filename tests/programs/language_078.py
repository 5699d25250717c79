import torch
from itertools import zip_longest

class Rope:
    """binary tree string with lazy concatenation"""
    __slots__ = ('l', 'r', 's', 'n', '_hash')
    def __new__(cls, s='', l=None, r=None):
        if l is not None and not l: return r
        if r is not None and not r: return l
        self = super().__new__(cls)
        self.s, self.l, self.r = s, l, r
        self.n = len(s) if l is None else len(l) + len(r)
        return self
    def __len__(self): return self.n
    def __add__(self, o): return Rope('', self, o if isinstance(o, Rope) else Rope(o))
    def __radd__(self, o): return Rope(o) + self
    def __getitem__(self, i):
        if isinstance(i, slice):
            return ''.join(self[j] for j in range(*i.indices(self.n)))
        if i < 0: i += self.n
        if not 0 <= i < self.n: raise IndexError(f'rope index {i}')
        node = self
        while node.l is not None:
            if i < len(node.l): node = node.l
            else: i, node = i - len(node.l), node.r
        return node.s[i]
    def __iter__(self):
        if self.l is None: yield from self.s
        else:
            yield from self.l
            yield from self.r
    def __str__(self): return ''.join(self)
    def __eq__(self, o): return len(self) == len(o) and all(a == b for a, b in zip_longest(self, o))
    def __hash__(self):
        try: return self._hash
        except AttributeError:
            self._hash = hash(str(self))
            return self._hash
    def __contains__(self, c): return any(x == c for x in self)
    def depth(self): return 1 + max(self.l.depth(), self.r.depth()) if self.l is not None else 0

def embed(r, w):
    if r.l is None:
        ids = torch.tensor([ord(c) % w.shape[0] for c in r.s], dtype=torch.long)
        return w[ids].sum(0)
    return torch.tanh(embed(r.l, w) + embed(r.r, w))

def program(parts, w, i):
    r = sum((Rope(p) for p in parts), '') if parts else Rope()
    if isinstance(r, str): r = Rope(r)
    e = embed(r, w)
    try:
        c = r[i]
    except (IndexError, TypeError) as ex:
        c = str(ex)
        print('index', c)
    r2 = 'x' + r + 'y'
    h = hash(r2) == hash(str(r2))
    return e, str(r2), len(r2), c, r2[::-2], r2 == str(r2), r2 != r, r + '' is r, h, 'y' in r2, r.depth(), {r2: 1}[Rope(str(r2))], [*map(str.upper, r)], bool(Rope()), hasattr(r, '_hash'), max(r2), sorted(r)

CALLS = ["(['ab', 'c', '', 'de'], torch.arange(6.).reshape(3, 2), 3)", "([], torch.ones(2, 2), 0)", "(['q'], torch.ones(1, 1), -1)", "(['é', 'z'] * 3, torch.eye(4), -9)", "(['ab', 'c'], torch.eye(2), 1.0)"]
