import torch
from heapq import heappush, heappop

class Symbol:
    __slots__ = ('text', 'prev', 'next', 'alive')
    def __init__(self, text, prev, next):
        self.text, self.prev, self.next, self.alive = text, prev, next, True
    def __repr__(self):
        return f'Symbol({self.text!r})'

def spm(word, scores):
    symbols = [Symbol(c, i - 1, i + 1 if i + 1 < len(word) else -1) for i, c in enumerate(word)]
    agenda = []
    def push(left, right):
        if left < 0 or right < 0:
            return
        piece = symbols[left].text + symbols[right].text
        if piece in scores:
            heappush(agenda, (-scores[piece], left, right, len(piece)))
    for i in range(1, len(symbols)):
        push(i - 1, i)
    while agenda:
        _, l, r, size = heappop(agenda)
        a, b = symbols[l], symbols[r]
        if not a.alive or not b.alive or len(a.text) + len(b.text) != size:
            continue
        a.text += b.text
        b.alive = False
        a.next = b.next
        if b.next >= 0:
            symbols[b.next].prev = l
        push(a.prev, l)
        push(l, a.next)
    return [s.text for s in symbols if s.alive]

def program(word, table, values):
    scores = dict(zip(table, values.tolist()))
    pieces = spm(word, scores)
    lens = torch.tensor([len(p) for p in pieces], dtype=values.dtype)
    bound = lens.cumsum(0)
    s = sum((torch.tensor(scores.get(p, 0.)) for p in pieces), torch.tensor(0.))
    if s.item() > 1 and len(lens) > 1:
        values = values - lens.mean()
    print(*pieces, sep='|')
    return pieces, bound, values, s

CALLS = ["('hello', ['he','ll','hell','lo','hello'], torch.tensor([.5,.9,.4,.8,.1]))", "('aaaa', ['aa','aaaa'], torch.tensor([1.,2.]))", "('xyz', [], torch.zeros(0))", "('hello', ['lo','he'], torch.tensor([3.,-1.]))"]
