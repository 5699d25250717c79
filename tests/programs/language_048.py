import torch
from fractions import Fraction
import math

class Lexer:
    def __init__(self, s): self.s, self.i = s, 0
    def __iter__(self): return self
    def __next__(self):
        while self.i < len(self.s) and self.s[self.i] in ' \t\n':
            self.i += 1
        if self.i >= len(self.s): raise StopIteration
        c = self.s[self.i]
        self.i += 1
        if c in '()': return c
        j = self.i - 1
        while self.i < len(self.s) and self.s[self.i] not in '() \t\n': self.i += 1
        return self.s[j:self.i]

def read(lex, depth=0):
    out = []
    for tok in lex:
        if tok == '(': out.append(read(lex, depth + 1))
        elif tok == ')':
            if not depth: raise SyntaxError('unexpected )')
            return tuple(out)
        else:
            for conv in (int, float, Fraction):
                try: out.append(conv(tok)); break
                except ValueError: continue
            else: out.append(tok)
    if depth: raise SyntaxError(f'{depth} open')
    return out

class Env(dict):
    def __init__(self, outer=None, **kw): super().__init__(kw); self.outer = outer
    def __missing__(self, k):
        if self.outer is None: raise NameError(k)
        return self.outer[k]

def ev(e, env):
    if isinstance(e, str): return env[e]
    if not isinstance(e, tuple): return e
    match e:
        case ('lambda', params, body): return lambda *a: ev(body, Env(env, **dict(zip(params, a))))
        case ('define', str(n), v): env[n] = r = ev(v, env); return r
        case ('if', c, a, b): return ev(a if ev(c, env) else b, env)
        case ('let', ((k, v), *more), body):
            inner = Env(env, **{k: ev(v, env)})
            return ev(('let', tuple(more), body) if more else body, inner)
        case (): return None
        case (f, *args): return ev(f, env)(*(ev(a, env) for a in args))

def program(src, x):
    g = Env(**{'+': lambda a, b: a + b, '*': lambda *a: math.prod(a) if not any(torch.is_tensor(v) for v in a) else a[0] * a[1], '<': lambda a, b: a < b, 'sum': torch.sum, 'show': lambda v: print('show', v.tolist()) or v, 'x': x, '-': lambda a, b: a - b})
    try:
        vals = [ev(f, g) for f in read(Lexer(src))]
    except (SyntaxError, NameError, TypeError, RuntimeError) as e:
        return type(e).__name__, str(e), x * 2
    return [v if not callable(v) else v.__name__ for v in vals], sorted(k for k in g if k.isalpha())

CALLS = ["('(define f (lambda (n) (if (< n 1) x (* 2 (f (- n 1)))))) (show (f 3))', torch.arange(2.))", "('(let ((a 1/3) (b 2.5)) (+ a b)) (sum (* x x))', torch.ones(3))", "('(', torch.ones(1))", "('(foo 1) )', torch.ones(1))", "('', torch.ones(1))", "('() (< (sum x) 3)', torch.ones(2))"]
