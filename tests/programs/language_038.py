import torch
from functools import lru_cache, cache

class Trie:
    __slots__ = 'kids', 'end', 'weight'
    def __init__(self):
        self.kids, self.end, self.weight = {}, False, 0.0
    def insert(self, word, w):
        node = self
        for c in word:
            node = node.kids.setdefault(c, Trie())
            node.weight += w
        node.end = True
    def find(self, prefix):
        node = self
        for c in prefix:
            if (node := node.kids.get(c)) is None:
                return None
        return node
    def __iter__(self):
        if self.end: yield ''
        for c, k in sorted(self.kids.items()):
            for w in k:
                yield c + w

def segment(text, trie, scores):
    @cache
    def best(i):
        if i == len(text):
            return 0.0, ()
        node, out = trie, (float('-inf'), None)
        for j in range(i, len(text)):
            node = node.kids.get(text[j])
            if node is None: break
            if node.end:
                s, rest = best(j + 1)
                if rest is not None:
                    out = max(out, (s + scores[text[i:j + 1]], (text[i:j + 1],) + rest), key=lambda p: p[0])
        return out
    r = best(0)
    return r, best.cache_info().currsize

def program(words, logp, text):
    lp = torch.log_softmax(logp, 0)
    t = Trie()
    scores = {}
    for w, s in zip(words, lp):
        t.insert(w, s)
        scores[w] = s.item()
    (score, seg), n = segment(text, t, scores)
    if seg is None:
        print('cannot segment', text)
        node = t.find(text[:1])
        return score, n, node and node.weight, node and [*node]
    ids = torch.tensor([words.index(w) for w in seg], dtype=torch.long)
    onehot = torch.nn.functional.one_hot(ids, max(1, len(words)))
    return round(score, 4), seg, onehot.sum(0), n, list(t), t.find('zz'), t.weight, hasattr(t, '__dict__')

CALLS = ["(['a', 'ab', 'b', 'c'], torch.arange(4.), 'abcab')", "(['x'], torch.ones(1), 'xy')", "([], torch.ones(0), '')", "(['aa', 'a'], torch.zeros(2), 'aaaa')", "(['q'], torch.ones(1), 'z')"]
