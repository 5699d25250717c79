import torch

def spec_decode(draft, target, ids, gamma, n):
    accepted = rejected = 0
    while len(ids) < n:
        guess, cur = [], list(ids)
        for _ in range(min(gamma, n - len(ids))):
            cur.append(int(draft[cur[-1]].argmax()))
            guess.append(cur[-1])
        for i, g in enumerate(guess):
            t = int(target[ids[-1]].argmax())
            ids.append(t)
            if t != g:
                rejected += len(guess) - i
                break
            accepted += 1
        else:
            if len(ids) < n:
                ids += [int(target[ids[-1]].argmax())]
        yield ids[-1], accepted, rejected

class PagedCache:
    """block table over a flat tensor pool"""
    def __init__(self, blocks, size, d):
        self.pool = torch.zeros(blocks, size, d)
        self.free = list(range(blocks))[::-1]
        self.table, self.fill = {}, {}
        self.size = size
    def append(self, seq, v):
        bt = self.table.setdefault(seq, [])
        n = self.fill.get(seq, 0)
        if n % self.size == 0:
            if not self.free:
                raise MemoryError(f'no block for {seq}')
            bt.append(self.free.pop())
        self.pool[bt[-1], n % self.size] = v
        self.fill[seq] = n + 1
    def gather(self, seq): return self.pool[self.table[seq]].flatten(0, 1)[:self.fill[seq]]
    def release(self, seq):
        self.free.extend(reversed(self.table.pop(seq)))
        return self.fill.pop(seq)

def program(draft, target, gamma, n, blocks):
    c = PagedCache(blocks, 2, draft.shape[1])
    ids, log = [0], []
    for k, (tok, a, r) in enumerate(spec_decode(draft, target, ids, gamma, n)):
        log.append((tok, a, r))
        try:
            c.append(f's{k % 2}', target[tok])
        except MemoryError as e:
            print(e)
            victim = min(c.fill, key=c.fill.get)
            log.append(('evict', victim, c.release(victim)))
    return ids, log, {s: c.gather(s) for s in c.table}, c.free, c.pool.sum(), c.fill

CALLS = ["(torch.eye(3).roll(1, 1), torch.eye(3).roll(1, 1), 2, 7, 4)", "(torch.eye(3), torch.eye(3).roll(2, 1), 3, 6, 2)", "(torch.ones(1, 1), torch.ones(1, 1), 1, 1, 1)", "(torch.arange(4.).reshape(2, 2), torch.eye(2).flip(0), 4, 9, 1)", "(torch.eye(2), torch.eye(2), 0, 3, 2)"]
