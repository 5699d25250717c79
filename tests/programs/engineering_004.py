import torch
import numpy as np
from enum import IntEnum, auto
from collections import namedtuple

class Kind(IntEnum):
    WORD = 0
    NUM = auto()
    PUNCT = auto()
    SPACE = auto()

Token = namedtuple('Token', 'kind text start end', defaults=(0, 0))

def classify(ch):
    match ch:
        case c if c.isalpha() or c == '_':
            return Kind.WORD
        case c if c.isdigit():
            return Kind.NUM
        case ' ' | '\t' | '\n':
            return Kind.SPACE
        case _:
            return Kind.PUNCT

def lex(text):
    start = 0
    while start < len(text):
        kind = classify(text[start])
        end = start + 1
        while end < len(text) and classify(text[end]) is kind and kind is not Kind.PUNCT:
            end += 1
        tok = Token(kind, text[start:end], start, end)
        start = end
        if kind != Kind.SPACE:
            yield tok

def program(text, scale):
    tokens = [*lex(text)]
    spans = torch.tensor([(t.start, t.end) for t in tokens], dtype=torch.float32).reshape(-1, 2)
    widths = (spans[:, 1] - spans[:, 0]) * scale
    onehot = torch.zeros(len(tokens), len(Kind))
    for row, t in enumerate(tokens):
        onehot[row, t.kind] = 1
    per_kind = onehot.T @ widths
    arr = per_kind.numpy()
    arr[arr == 0] = -1
    top = Kind(int(per_kind.argmax()))
    if top is Kind.NUM:
        value = sum(int(t.text) for t in tokens if t.kind == Kind.NUM)
        print('numbers', value)
        per_kind += value
    return tokens, per_kind, top, top.name, {k.name: float(v) for k, v in zip(Kind, arr)}

CALLS = ["('foo = 12345678 + bar', 2.0)", "('ab cd (ef)', 1.0)", "('', 3.)", "('x1 y2\\n3', -1.0)", "('foo = 12345678 + bar', 2.0)"]
