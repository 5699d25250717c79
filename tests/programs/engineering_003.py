import torch
from functools import lru_cache
from itertools import count, takewhile, chain

class Trie:
    __slots__ = ('children', 'id')
    def __init__(self):
        self.children = {}
        self.id = None
    def insert(self, word, idx):
        node = self
        for ch in word:
            node = node.children.setdefault(ch, Trie())
        node.id = idx
    def longest(self, s, start):
        node, best, end = self, None, start
        for pos in range(start, len(s)):
            if (node := node.children.get(s[pos])) is None:
                break
            if node.id is not None:
                best, end = node.id, pos + 1
        return best, end

def wordpiece(trie, s):
    pos = 0
    out = []
    while pos < len(s):
        idx, end = trie.longest(s, pos)
        if idx is None:
            out.append(-1)
            pos += 1
            continue
        out.append(idx)
        pos = end
    return out

def program(words, s, x):
    trie = Trie()
    for idx, w in zip(count(), words):
        trie.insert(w, idx)
    ids = wordpiece(trie, s)
    t = torch.as_tensor(ids, dtype=torch.int64)
    known = t[t >= 0]
    x = x.clone()
    if known.numel():
        x.index_add_(0, known % x.size(0), torch.ones(known.numel(), x.size(1)))
    total = x.sum()
    while total > 20:
        x /= 2
        total = x.sum()
        print('halved', round(total.item(), 3))
    return ids, known, x, list(takewhile(lambda i: i >= 0, ids)), total

CALLS = ["(['un','able','a','b','unable'], 'unableab', torch.zeros(3,2))", "(['a'], 'zzz', torch.full((2,2), 9.))",
 "(['ab','abc','c'], 'abcabcabd', torch.arange(20.).view(4,5))", "([], '', torch.ones(1,1))"]
