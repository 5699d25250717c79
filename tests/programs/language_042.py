import torch

class LRU:
    """doubly linked list LRU with sentinel"""
    class Link:
        __slots__ = 'key', 'val', 'prev', 'next'
    def __init__(self, cap, on_evict=None):
        self.cap, self.map, self.on_evict = cap, {}, on_evict
        self.head = h = LRU.Link()
        h.prev = h.next = h
    def _unlink(self, n): n.prev.next, n.next.prev = n.next, n.prev
    def _front(self, n):
        h = self.head
        n.prev, n.next = h, h.next
        h.next.prev = n
        h.next = n
    def __getitem__(self, k):
        n = self.map[k]
        self._unlink(n); self._front(n)
        return n.val
    def __setitem__(self, k, v):
        if k in self.map:
            self.map[k].val = v
            self[k]
            return
        n = LRU.Link()
        n.key, n.val = k, v
        self.map[k] = n
        self._front(n)
        if len(self.map) > self.cap:
            old = self.head.prev
            self._unlink(old)
            del self.map[old.key]
            if self.on_evict: self.on_evict(old.key, old.val)
    def __iter__(self):
        n = self.head.next
        while n is not self.head:
            yield n.key
            n = n.next

def program(table, queries, cap):
    evicted = {}
    lru = LRU(cap, on_evict=evicted.__setitem__)
    hits = 0
    out = torch.zeros(table.shape[1])
    for q in queries:
        try:
            v = lru[q]
            hits += 1
        except KeyError:
            v = evicted.pop(q, None)
            if v is None:
                v = table[q].tanh()
            else:
                print('revived', q)
            lru[q] = v
        out = out + v
    order = [*lru]
    try:
        lru.head.val
    except AttributeError as e:
        msg = str(e)
    return out, hits, order, sorted(evicted), msg, [evicted[k] is table for k in evicted], lru.head.next.prev is lru.head

CALLS = ["(torch.arange(6.).reshape(3, 2), [0, 1, 0, 2, 1, 1], 2)", "(torch.ones(2, 1), [0, 1, 0, 1], 1)", "(torch.ones(1, 3), [], 1)", "(torch.ones(2, 2), [0, 1, -1], 0)", "(torch.ones(1, 1), [3], 1)"]
