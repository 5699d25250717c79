import torch
from typing import NamedTuple, Optional
import bisect

class Encoding(NamedTuple):
    ids: torch.Tensor
    offsets: list
    mask: Optional[torch.Tensor] = None

    @property
    def length(self):
        return len(self.offsets)

    def truncated(self, n):
        return self._replace(ids=self.ids[:n], offsets=self.offsets[:n], mask=None if self.mask is None else self.mask[:n])

def viterbi(text, logp):
    n = len(text)
    best = torch.full((n + 1,), float('-inf'))
    best[0] = 0
    back = [0] * (n + 1)
    for end in range(1, n + 1):
        for start in range(max(0, end - 3), end):
            p = logp.get(text[start:end], -10.0 if end - start == 1 else None)
            if p is None:
                continue
            cand = best[start] + p
            if cand > best[end]:
                best[end] = cand
                back[end] = start
    offsets = []
    end = n
    while end:
        offsets.append((back[end], end))
        end = back[end]
    return offsets[::-1], best[n]

def program(text, logp, limit):
    offsets, score = viterbi(text, logp)
    pieces = sorted(logp)
    ids = torch.tensor([bisect.bisect_left(pieces, text[a:b]) for a, b in offsets], dtype=torch.long)
    enc = Encoding(ids, offsets, torch.ones_like(ids, dtype=torch.bool))
    if enc.length > limit:
        print('truncate', enc.length, limit)
        enc = enc.truncated(limit)
    ids, *_, mask = enc
    return enc, score, ids[mask], enc._asdict()['offsets'], type(enc).__name__

CALLS = ["('abcab', {'ab': -1., 'c': -2., 'abc': -2.5}, 10)", "('zzz', {}, 2)", "('', {'a': -1.}, 1)", "('aaaa', {'a': -3., 'aa': -4., 'aaa': -4.5}, 1)"]
