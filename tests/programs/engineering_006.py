import torch
from itertools import groupby

class CharTokenizer:
    pad_id = 0
    def __init__(self, alphabet):
        self._alphabet = alphabet
        self._map = {c: i + 1 for i, c in enumerate(alphabet)}
    @property
    def size(self):
        return len(self._alphabet) + 1
    @classmethod
    def from_texts(cls, *texts):
        return cls(''.join(sorted(set().union(*texts))))
    def __call__(self, *texts, pad_to=None, **kw):
        rows = [[self._map[c] for c in t] for t in texts]
        n = pad_to or max(map(len, rows), default=0)
        return torch.tensor([r[:n] + [self.pad_id] * (n - len(r)) for r in rows]).reshape(len(rows), n)
    def decode(self, ids):
        return ''.join(self._alphabet[i - 1] for i in ids if i)

def ctc_collapse(path, blank=0):
    return [k for k, _ in groupby(path) if k != blank]

def program(texts, logits_scale, pad_to):
    tok = CharTokenizer.from_texts(*texts)
    batch = tok(*texts, pad_to=pad_to)
    logits = torch.nn.functional.one_hot(batch.long(), tok.size).float() * logits_scale
    probs = logits.softmax(-1)
    best = probs.argmax(-1)
    out = []
    for row, length in zip(best, (batch != 0).sum(1)):
        path = row[:length].tolist()
        out.append(tok.decode(ctc_collapse(path)))
        if len(out[-1]) < length.item():
            print('collapsed', out[-1])
    try:
        extra = tok('~')
    except KeyError as e:
        extra = e.args[0]
    finally:
        probs[..., 0] = 0
    return batch, out, probs.sum(), extra, tok.size

CALLS = ["(['hello', 'abba'], 5., None)", "(['aa', 'b', ''], 1., 3)", "(['~~'], 2., 1)", "(['hello', 'abba'], -5., None)"]
