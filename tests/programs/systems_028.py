import torch, re, operator
from dataclasses import dataclass

@dataclass(frozen=True, slots=True)
class Tok:
    kind: str
    text: str
    pos: int
    def __str__(self): return f'{self.kind}({self.text!r})@{self.pos}'

SPEC = {'NUM': r'\d+(?:\.\d*)?', 'ID': r'[A-Za-z_]\w*', 'OP': r'\*\*|[-+*/@()=,]', 'WS': r'\s+', 'BAD': r'.'}
RX = re.compile('|'.join(f'(?P<{k}>{v})' for k, v in SPEC.items()))

def lex(s):
    for m in RX.finditer(s):
        k = m.lastgroup
        if k == 'WS': continue
        if k == 'BAD': raise SyntaxError(f'bad char {m.group()!r} at {m.start()}')
        yield Tok(k, m.group(), m.start())
    yield Tok('END', '', len(s))

class Parser:
    BIN = {'+': (10, operator.add), '-': (10, operator.sub), '*': (20, operator.mul), '/': (20, operator.truediv), '@': (20, operator.matmul), '**': (31, operator.pow)}
    def __init__(self, s, env): self.toks, self.env, self.i = [*lex(s)], env, 0
    @property
    def cur(self): return self.toks[self.i]
    def eat(self, text=None):
        t = self.cur
        if text and t.text != text: raise SyntaxError(f'expected {text!r}, got {t}')
        self.i += 1
        return t
    def expr(self, bp=0):
        left = self.atom()
        while (op := self.BIN.get(self.cur.text)) and op[0] > bp:
            self.eat(); left = op[1](left, self.expr(op[0] - (op[0] & 1) * 2))
        return left
    def atom(self):
        match self.eat():
            case Tok('NUM', text=t): return float(t) if '.' in t else int(t)
            case Tok('ID', name) if self.cur.text == '(':
                self.eat('('); args = []
                while self.cur.text != ')':
                    args.append(self.expr())
                    if self.cur.text == ',': self.eat()
                self.eat(')')
                return getattr(torch, name)(*args)
            case Tok(kind='ID', text=n): return self.env[n]
            case Tok(text='('):
                v = self.expr(); self.eat(')'); return v
            case Tok(text='-'): return -self.expr(25)
            case t: raise SyntaxError(f'unexpected {t!s}')

def program(src, **env): return _run(src, env)
def _run(src, env):
    res = []
    for line in src.split(';'):
        try:
            p = Parser(line, env)
            if len(p.toks) > 2 and p.toks[1].text == '=':
                n = p.eat().text; p.eat('='); env[n] = p.expr(); v = env[n]
            else: v = p.expr()
            p.cur.kind == 'END' or p.eat('<end>')
            res.append(v)
        except (SyntaxError, KeyError, AttributeError, TypeError, RuntimeError) as e:
            print(type(e).__name__); res.append(f'{type(e).__name__}: {str(e)[:60]}')
    return res, sorted(env), Tok('a', 'b', 0) == Tok('a', 'b', 0)
program = lambda src, env: _run(src, dict(env))

CALLS = ["('x*2+1; y = x ** 2 ** 0; sum(y) / 2; -x*x', {'x': torch.arange(3.)})", "('a @ a; max(a, 0, b; $; 1 +', {'a': torch.eye(2)})", "('', {})", "('relu(x - 2) * (3 - y); nosuch(x); x y', {'x': torch.arange(4.), 'y': 2})", "('2 ** 3 ** 2; 7 / 0.5 * x', {'x': torch.ones(1)})"]
