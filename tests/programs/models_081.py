import torch
from string import Formatter
class Lexer:
    KW = {'let', 'print'}
    def __init__(self, s): self.s, self.i = s, 0
    def __iter__(self):
        while self.i < len(self.s):
            c = self.s[self.i]
            if c.isspace(): self.i += 1; continue
            if c.isalpha():
                j = self.i
                while j < len(self.s) and self.s[j].isalnum(): j += 1
                w = self.s[self.i:j]; self.i = j; yield ('kw' if w in self.KW else 'id'), w
            elif c.isdigit():
                j = self.i
                while j < len(self.s) and (self.s[j].isdigit() or self.s[j] == '.'): j += 1
                yield 'num', float(self.s[self.i:j]); self.i = j
            else: self.i += 1; yield 'op', c
        yield 'end', None
class Parser:
    PREC = {'+': 1, '-': 1, '*': 2, '/': 2, '^': 3}
    def __init__(self, s, env): self.toks = iter(Lexer(s)); self.env = env; self.cur = next(self.toks)
    def eat(self): t, self.cur = self.cur, next(self.toks, ('end', None)); return t
    def atom(self):
        match self.eat():
            case 'num', v: return torch.tensor(v)
            case 'id', n if n in self.env: return self.env[n]
            case 'id', n: raise NameError(f'undefined {n}')
            case 'op', '(': v = self.expr(0); self.expect(')'); return v
            case 'op', '-': return -self.expr(3)
            case kind, v: raise SyntaxError(f'unexpected {kind} {v!r}')
    def expect(self, c):
        if self.eat() != ('op', c): raise SyntaxError(f'expected {c}')
    def expr(self, p):
        a = self.atom()
        while self.cur[0] == 'op' and (q := self.PREC.get(self.cur[1], -1)) > p:
            _, o = self.eat(); b = self.expr(q - (o == '^'))
            a = {'+': torch.add, '-': torch.sub, '*': torch.mul, '/': torch.div, '^': torch.pow}[o](a, b)
        return a
    def stmt(self):
        match self.cur:
            case 'kw', 'let': self.eat(); _, n = self.eat(); self.expect('='); self.env[n] = v = self.expr(0); return n, v
            case 'kw', 'print': self.eat(); v = self.expr(0); print('>', v.tolist()); return None, v
            case _: return '', self.expr(0)
def program(src, x):
    env, out = {'x': x}, []
    for line in filter(None, map(str.strip, src.split('\n'))):
        try: out.append(Parser(line, env).stmt())
        except (NameError, SyntaxError) as e: out.append((type(e).__name__, str(e)))
        except RuntimeError: out.append('shape')
    return out, list(env), env['x'] is x, [f[1] for f in Formatter().parse('{a} {b.c}')]
CALLS = ["('let y = x * 2 ^ 2 ^ 0.5\\nprint y - 1\\n(x + y', torch.arange(3.))", "('z + 1\\n-x ^ 2\\nlet x = 5\\nx / 0', torch.ones(2))", "('', torch.ones(1))", "(')\\nlet q = x - - x', torch.zeros(0))"]
