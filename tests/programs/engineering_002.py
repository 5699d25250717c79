import re
import torch
from dataclasses import dataclass, field
from typing import List, Dict

TOKEN = re.compile(r"\w+|[^\w\s]")
SPECIAL = ('<pad>', '<unk>', '<bos>', '<eos>')

@dataclass
class Vocab:
    itos: List[str] = field(default_factory=lambda: list(SPECIAL))
    stoi: Dict[str, int] = field(default_factory=dict)

    def __post_init__(self):
        self.stoi.update((s, i) for i, s in enumerate(self.itos))

    def __getitem__(self, key):
        if isinstance(key, str):
            return self.stoi.get(key, self.stoi['<unk>'])
        return self.itos[key]

    def __len__(self):
        return len(self.itos)

    def __contains__(self, tok):
        return tok in self.stoi

    def add(self, tok):
        if tok not in self:
            self.stoi[tok] = len(self.itos)
            self.itos.append(tok)
        return self[tok]

def encode(vocab, text, grow=False):
    yield vocab['<bos>']
    for m in TOKEN.finditer(text.lower()):
        yield vocab.add(m.group()) if grow else vocab[m.group()]
    yield vocab['<eos>']

def program(train, test, weight):
    vocab = Vocab()
    seqs = [list(encode(vocab, s, grow=True)) for s in train]
    rows = [torch.tensor(s) for s in seqs] + [torch.tensor([*encode(vocab, test)])]
    batch = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    mask = batch != 0
    lengths = mask.sum(1)
    scores = (weight[batch % len(weight)] * mask).sum(1) / lengths
    best = scores.argmax().item()
    unk = (batch[-1] == vocab['<unk>']).sum().item()
    if unk:
        print(f'{unk} unknown of {len(vocab)}')
    words = [vocab[i] for i in batch[best].tolist() if i]
    return vocab, batch, scores, words, ' '.join(words[1:-1])

CALLS = ["(['Hello, world!', 'hello cat'], 'the cat', torch.linspace(0,1,6))", "(['a b c'], 'a b c', torch.tensor([1.,-1.]))",
 "([], '', torch.ones(3))", "(['Hello, world!', 'hello cat'], 'the cat', torch.linspace(0,1,6))"]
