import torch
class Trie:
    __slots__ = 'kids', 'end'
    def __init__(self): self.kids, self.end = {}, None
    def add(self, seq, label):
        node = self
        for s in seq: node = node.kids.setdefault(s, Trie())
        node.end = label
        return self
    def walk(self, seq):
        node = self
        for s in seq:
            node = node.kids.get(s)
            if node is None: return
        return node
    def __iter__(self):
        if self.end is not None: yield (), self.end
        for k in sorted(self.kids):
            for path, e in self.kids[k]: yield (k, *path), e
def decode(trie, table, maxlen):
    out, total = [], torch.zeros(())
    while (node := trie.walk(out)) is not None and len(out) < maxlen:
        allowed = list(node.kids)
        if not allowed: break
        mask = torch.full((table.shape[1],), -torch.inf)
        mask[allowed] = 0
        lg = table[len(out) % len(table)] + mask
        p, i = lg.softmax(0).max(0)
        if node.end is not None and p < .6: print('stop early', node.end); break
        total = total + p.log(); out.append(int(i))
    return out, total, trie.walk(out).end
def program(words, table, maxlen):
    t = Trie()
    for k, w in enumerate(words): t.add(w, f'w{k}')
    try: r = decode(t, table, maxlen)
    except IndexError as e: r = type(e).__name__
    return r, list(t), t.walk([99]), (t.walk(()) is t), hasattr(t, '__dict__')
CALLS = ["([[1,2,3],[1,2],[0,3]], torch.arange(12.).reshape(3,4).cos(), 5)", "([], torch.ones(1,3), 3)", "([[2],[2,2],[2,1]], torch.zeros(2,3), 4)", "([[9]], torch.zeros(2,3), 4)", "([[1,1,1,1]], torch.zeros(2,3), 2)"]
