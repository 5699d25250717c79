import torch
import re
from collections import namedtuple

Tok = namedtuple('Tok', 'type value line col')

class JsonError(ValueError):
    def __init__(self, msg, tok):
        self.tok = tok
        super().__init__(f'{msg} at {tok.line}:{tok.col}' if tok else msg)

SPEC = [('NUM', r'-?\d+(\.\d+)?([eE][+-]?\d+)?'), ('STR', r'"(?:\\.|[^"\\])*"'), ('KW', r'true|false|null|NaN'), ('PUN', r'[{}\[\]:,]'), ('NL', r'\n'), ('WS', r'[ \t]+'), ('BAD', r'.')]
RX = re.compile('|'.join('(?P<%s>%s)' % p for p in SPEC))
ESC = {'n': '\n', 't': '\t', '"': '"', '\\': '\\', '/': '/'}

def lex(s):
    line, start = 1, 0
    for m in RX.finditer(s):
        k, v, col = m.lastgroup, m[0], m.start() - start
        if k == 'NL':
            line, start = line + 1, m.end()
        elif k == 'BAD':
            raise JsonError(f'bad char {v!r}', Tok(k, v, line, col))
        elif k != 'WS':
            yield Tok(k, v, line, col)

class P:
    def __init__(self, s):
        self.g = lex(s)
        self.tok = next(self.g, None)
    def next(self, *want):
        t = self.tok
        if t is None or want and t.value not in want:
            raise JsonError(f'expected {"/".join(want) or "value"}', t)
        self.tok = next(self.g, None)
        return t
    def value(self):
        t = self.next()
        match t.type:
            case 'NUM': return float(t.value) if m_float(t.value) else int(t.value)
            case 'STR': return re.sub(r'\\(u[0-9a-fA-F]{4}|.)', lambda m: chr(int(m[1][1:], 16)) if m[1][0] == 'u' and len(m[1]) > 1 else ESC.get(m[1], m[0]), t.value[1:-1])
            case 'KW': return {'true': True, 'false': False, 'null': None, 'NaN': float('nan')}[t.value]
        if t.value == '[':
            out = []
            if self.tok and self.tok.value != ']':
                out.append(self.value())
                while self.tok and self.tok.value == ',':
                    self.next(','); out.append(self.value())
            self.next(']')
            return out
        if t.value == '{':
            out = {}
            while self.tok and self.tok.value != '}':
                if out: self.next(',')
                k = self.value(); self.next(':')
                out[k] = self.value()
            self.next('}')
            return out
        raise JsonError('unexpected ' + t.value, t)

m_float = re.compile('[.eE]').search

def shape(v):
    s = ()
    while isinstance(v, list):
        s += (len(v),)
        if not v: break
        v = v[0]
    return s

def program(s, w):
    try:
        v = P(s).value()
    except JsonError as e:
        print(e)
        return str(e), e.tok, w * 2
    if isinstance(v, list):
        try:
            t = torch.tensor(v, dtype=w.dtype)
            return t * w, shape(v), t.shape == shape(v)
        except (TypeError, ValueError, RuntimeError) as e:
            return type(e).__name__, v, w.sum()
    return v, w + len(v) if hasattr(v, '__len__') else w

CALLS = ["('[[1, 2.5], [3e1, -4]]', torch.ones(2))", "('{\"a\": [true, null],\\n \"b\\\\u0041\\\\n\": \"x\"}', torch.ones(1))", "('[1,\\n  #]', torch.zeros(1))", "('', torch.ones(1))", "('[1, \"a\"]', torch.ones(2))", "('[[1,2],[3]]', torch.ones(1))", "('12', torch.arange(2))"]
