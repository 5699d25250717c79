import torch

class Paged:
    """paged kv cache: blocks from a free list, copy on write between sequences"""
    def __init__(self, blocks, size, d):
        self.k = torch.zeros(blocks, size, d)
        self.free = list(range(blocks))[::-1]
        self.refs = [0] * blocks
        self.tables, self.lens = {}, {}
        self.size = size
    def _alloc(self):
        if not self.free: raise MemoryError('no free block')
        b = self.free.pop(); self.refs[b] = 1
        return b
    def append(self, seq, k):
        t, n = self.tables.setdefault(seq, []), self.lens.get(seq, 0)
        block, off = divmod(n, self.size)
        if block == len(t): t.append(self._alloc())
        elif self.refs[t[block]] > 1:
            print('copy block', t[block])
            new = self._alloc()
            self.k[new] = self.k[t[block]]
            self.refs[t[block]] -= 1
            t[block] = new
        self.k[t[block], off] = k
        self.lens[seq] = n + 1
    def fork(self, a, b):
        self.tables[b], self.lens[b] = self.tables[a][:], self.lens[a]
        for x in self.tables[b]: self.refs[x] += 1
    def drop(self, seq):
        for b in self.tables.pop(seq):
            self.refs[b] -= 1
            if not self.refs[b]: self.free.append(b)
        del self.lens[seq]
    def gather(self, seq):
        return self.k[self.tables[seq]].flatten(0, 1)[:self.lens[seq]]

def attend(q, k): return torch.softmax(k @ q / len(q) ** .5, 0) @ k

def program(x, blocks, size, script):
    c = Paged(blocks, size, x.shape[1])
    outs, i = [], 0
    for cmd, *args in script:
        try:
            if cmd == 'add':
                for _ in range(args[1]):
                    c.append(args[0], x[i % len(x)] + i); i += 1
            else: getattr(c, cmd)(*args)
        except (MemoryError, KeyError) as e:
            outs.append((cmd, type(e).__name__, e.args)); continue
        outs.append({s: attend(x[0], c.gather(s)) for s in c.tables})
    return outs, c.tables, c.refs, c.free, c.lens, c.k

CALLS = ["(torch.arange(4.).reshape(2,2)/4, 4, 2, [('add','a',3),('fork','a','b'),('add','b',2),('drop','a')])", "(torch.ones(1,2), 2, 1, [('add','a',3),('drop','z'),('drop','a'),('add','b',1)])", "(torch.ones(1,3), 3, 4, [('add','a',5),('fork','a','b'),('add','a',1)])", "(torch.ones(0,3), 3, 4, [('add','a',1)])", "(torch.ones(1,3), 3, 4, [('fork','q','b')])"]
