import torch
from functools import reduce
import operator

class ParseError(ValueError):
    def __init__(self, msg, pos):
        super().__init__(msg, pos)
        self.pos = pos
    def __str__(self):
        return f'{self.args[0]} at {self.pos}'

class Parser:
    OPS = {'+': (1, operator.add), '-': (1, operator.sub), '*': (2, operator.mul), '/': (2, operator.truediv), '@': (3, operator.matmul)}

    def __init__(self, src, env):
        self.src, self.pos, self.env, self.trace = src, 0, env, []

    def peek(self):
        while self.pos < len(self.src) and self.src[self.pos].isspace():
            self.pos += 1
        return self.src[self.pos] if self.pos < len(self.src) else None

    def atom(self):
        c = self.peek()
        if c is None:
            raise ParseError('unexpected end', self.pos)
        if c == '(':
            self.pos += 1
            v = self.expr(0)
            if self.peek() != ')':
                raise ParseError('expected )', self.pos)
            self.pos += 1
            return v
        start = self.pos
        if c == '-':
            self.pos += 1
            return -self.atom()
        while self.pos < len(self.src) and (self.src[self.pos].isalnum() or self.src[self.pos] == '.'):
            self.pos += 1
        tok = self.src[start:self.pos]
        if tok.replace('.', '', 1).isdigit():
            return float(tok) if '.' in tok else int(tok)
        if tok not in self.env:
            raise ParseError(f'unknown {tok!r}', start)
        return self.env[tok]

    def expr(self, minp):
        left = self.atom()
        while (c := self.peek()) in self.OPS and self.OPS[c][0] > minp:
            prec, fn = self.OPS[c]
            self.pos += 1
            right = self.expr(prec)
            self.trace.append(c)
            left = fn(left, right)
        return left

def program(src, **env):
    p = Parser(src, env)
    try:
        v = p.expr(0)
        if p.peek() is not None:
            raise ParseError('trailing', p.pos)
    except ParseError as e:
        return str(e), e.pos, p.trace
    except ZeroDivisionError as e:
        v = torch.full((2,), float('inf'))
        p.trace.append(str(e))
    else:
        p.trace.append('ok')
    finally:
        print(src, '->', len(p.trace))
    if isinstance(v, torch.Tensor):
        return v, v.relu().sum(), p.trace, v is env.get('x')
    return v, p.trace, torch.as_tensor(v) * 2

class _C(tuple):
    pass

_orig = program
def program(src, env):
    return _orig(src, **env)

CALLS = ["('x * 2 + y / 4', {'x': torch.arange(3.), 'y': torch.ones(3)})", "('-(x - y) @ y', {'x': torch.arange(3.), 'y': torch.ones(3)})",
 "('1 / 0', {})", "('(x', {'x': torch.ones(1)})", "('x', {'x': torch.ones(2, 2)})", "('q+1', {'x': 1})", "('2 * 3.5 - 1', {})"]
