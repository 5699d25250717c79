import torch
import re
from functools import lru_cache, reduce

class Unigram:
    """piece tokenizer: sub with callbacks, byte fallback, cached score lookups, class_getitem presets"""
    presets = {'tiny': 'the he t e r', 'none': ''}
    used = []
    def __class_getitem__(cls, name):
        cls.used.append(name)
        return cls(cls.presets[name].split())
    def __init__(self, pieces):
        self.pieces = sorted(pieces, key=lambda p: (-len(p), p))
        self.rx = re.compile('|'.join(map(re.escape, self.pieces)) or r'(?!)')
        self.ids = {p: i + 256 for i, p in enumerate(self.pieces)}
        self.lookup = lru_cache(maxsize=2)(self._lookup)
        self.misses = 0
    def _lookup(self, word):
        self.misses += 1
        out, pos = [], 0
        while pos < len(word):
            if m := self.rx.match(word, pos):
                out.append(self.ids[m[0]])
                pos = m.end()
            else:
                out += word[pos].encode()
                pos += 1
        return tuple(out)
    def encode(self, text): return [i for w in re.findall(r'\S+|\s+', text) for i in self.lookup(w)]
    def decode(self, ids):
        rev = {v: k.encode() for k, v in self.ids.items()}
        return b''.join(rev[i] if i > 255 else bytes([i]) for i in ids).decode(errors='replace')

def mask(text, rng):
    n = 0
    def sub(m):
        nonlocal n
        n += 1
        return '<%d>' % n if len(m[0]) % 2 else m[0].title()
    return re.subn(r'(?P<w>\w{3,})', sub, text), n

def program(text, preset, emb):
    Unigram.used.clear()
    try:
        tok = Unigram[preset]
    except KeyError as e:
        print('preset', e)
        tok = Unigram[next(iter(Unigram.presets))]
    ids = tok.encode(text)
    x = emb[torch.tensor(ids, dtype=torch.long) % len(emb)]
    att = torch.softmax(x @ x.T, -1) @ x if len(ids) else x
    (masked, k), n = mask(text, None)
    back = tok.decode(ids[:-1])
    return ids, att.sum(0), back, masked, k == n, Unigram.used, tok.misses, tok.lookup.cache_info(), re.split(r'(\s)', text, maxsplit=2), tok.rx.pattern

CALLS = ["('the teeth there the he', 'tiny', torch.arange(12.).reshape(6, 2) / 10)", "('héé x', 'none', torch.ones(3, 1))", "('', 'tiny', torch.ones(2, 2))", "('her tree', 'zz', torch.eye(4))", "('a b a c a', 'tiny', torch.ones(5, 2))"]
