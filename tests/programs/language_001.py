import re
import torch
from collections import OrderedDict, UserDict
from enum import Enum, auto

class Kind(Enum):
    WORD = auto()
    NUM = auto()
    PUNCT = auto()
    OTHER = auto()

    @property
    def pattern(self):
        return {Kind.WORD: r'[^\W\d_]+', Kind.NUM: r'\d+(?:\.\d+)?', Kind.PUNCT: r'[^\w\s]', Kind.OTHER: r'\S'}[self]

MASTER = re.compile('|'.join(f'(?P<{k.name}>{k.pattern})' for k in Kind))

class Vocab(UserDict):
    def __missing__(self, key):
        self[key] = len(self)
        return self[key]

VOCAB = Vocab()
STATS = OrderedDict()

def tokenise(text):
    for m in MASTER.finditer(text):
        yield Kind[m.lastgroup], m.group(), m.span()

def program(text, emb):
    ids, kinds, spans = [], [], []
    for kind, value, span in tokenise(text):
        ids.append(VOCAB[value.casefold()])
        kinds.append(kind)
        spans.append(span)
        STATS[kind.name] = STATS.get(kind.name, 0) + 1
        STATS.move_to_end(kind.name)
    t = torch.tensor(ids, dtype=torch.long)
    print('tokens', len(ids), *(k.name[0] for k in kinds), sep='|')
    x = emb[t % emb.size(0)]
    mask = torch.tensor([k is Kind.NUM for k in kinds], dtype=torch.bool)
    try:
        pooled = x.max(dim=0).values
    except (IndexError, RuntimeError) as e:
        pooled = type(e).__name__
    x = x.masked_fill(mask[:, None], 0.5)
    y = (x * torch.tensor([b - a for a, b in spans], dtype=x.dtype)[:, None]).sum(0)
    return pooled, y, kinds, dict(STATS), list(VOCAB.items())[-3:], mask.any()

CALLS = ["('Hello, world 3.14!', torch.arange(12.).reshape(4, 3))", "('', torch.ones(2, 2))",
 "('ÄÖ ß _x_ 12 12', torch.linspace(-1, 1, 10).reshape(5, 2))", "('hello 42', torch.eye(3))", "('a b', torch.zeros(0, 2))"]
