import torch, re, operator

class Lexer:
    spec = [('NUM', r'\d+(?:\.\d*)?'), ('ID', r'[a-z]+'), ('OP', r'\*\*|[-+*/()=,]'), ('WS', r'\s+'), ('BAD', r'.')]
    rx = re.compile('|'.join(f'(?P<{n}>{p})' for n, p in spec))
    def __init__(self, s): self.it = self.run(s); self.peeked = []
    def run(self, s):
        for m in self.rx.finditer(s):
            if m.lastgroup == 'BAD': raise SyntaxError(f'bad char {m.group()!r} at {m.start()}')
            if m.lastgroup != 'WS': yield m.lastgroup, m.group()
        yield 'END', ''
    def peek(self):
        if not self.peeked: self.peeked.append(next(self.it))
        return self.peeked[0]
    def pop(self):
        tok = self.peek(); self.peeked.clear(); return tok

BIN = {'+': (1, operator.add), '-': (1, operator.sub), '*': (2, operator.mul), '/': (2, operator.truediv), '**': (4, operator.pow)}
FUNCS = {'exp': torch.exp, 'max': lambda a, b: torch.maximum(*torch.broadcast_tensors(*map(torch.as_tensor, (a, b)))), 'neg': torch.neg}

def expr(lx, env, rbp=0):
    kind, text = lx.pop()
    match kind, text:
        case 'NUM', t: left = float(t) if '.' in t else int(t)
        case 'ID', name if lx.peek()[1] == '(':
            lx.pop(); args = []
            while lx.peek()[1] != ')':
                args.append(expr(lx, env))
                if lx.peek()[1] == ',': lx.pop()
            lx.pop(); left = FUNCS[name](*args)
        case 'ID', name: left = env[name]
        case 'OP', '(':
            left = expr(lx, env); lx.pop()
        case 'OP', '-': left = -expr(lx, env, 3)
        case _: raise SyntaxError(f'unexpected {text!r}')
    while (op := lx.peek()[1]) in BIN and BIN[op][0] > rbp:
        lx.pop()
        right = expr(lx, env, BIN[op][0] - (op == '**'))
        left = BIN[op][1](left, right)
    return left

def program(lines, **env):
    out = []
    for line in lines:
        name, eq, body = line.partition('=')
        try:
            v = expr(Lexer(body if eq else name), env)
            if eq: env[name.strip()] = v
            if torch.is_tensor(v) and v.float().sum() < 0: print(name, 'negative')
        except (SyntaxError, KeyError, ZeroDivisionError) as e:
            v = f'{type(e).__name__}: {e}'
        out.append(v)
    return out, env

def _wrap(lines, env): return program(lines, **env)
program_, program = program, lambda lines, env: program_(lines, **env)

CALLS = ["(['y = x * 2 + 1', 'y ** 2 ** 0.5', '-x'], {'x': torch.arange(3.)})", "(['1/0', '2**3**2', 'max(x, 1) / 2', '7 / 2 - 1'], {'x': torch.tensor([0., 3.])})", "(['x $ 1', 'z', '(', 'exp(neg(x))'], {'x': torch.tensor(2.)})"]
