import torch

def parse(tokens, pos=0):
    vals = []
    while pos < len(tokens):
        tok = tokens[pos]
        if tok == '(':
            sub, pos = parse(tokens, pos + 1)
            vals.append(sub)
        elif tok == ')':
            return vals, pos + 1
        else:
            try: vals.append(float(tok))
            except ValueError: vals.append(tok)
            pos += 1
    return vals, pos

class Env(dict):
    def __init__(self, params=(), args=(), outer=None):
        self.update(zip(params, args)); self.outer = outer
    def find(self, var):
        if var in self: return self
        if self.outer is None: raise NameError(f"unbound {var}")
        return self.outer.find(var)

def evaluate(x, env):
    if isinstance(x, str): return env.find(x)[x]
    if not isinstance(x, list): return x
    op, *args = x
    if op == 'if':
        test, conseq, *alt = args
        t = evaluate(test, env)
        return evaluate(conseq if t > 0 else alt[0] if alt else 0., env)
    if op == 'define':
        env[args[0]] = evaluate(args[1], env)
        return env[args[0]]
    if op == 'lambda':
        return lambda *a: evaluate(args[1], Env(args[0], a, env))
    proc = evaluate(op, env)
    return proc(*[evaluate(a, env) for a in args])

def program(src, t):
    env = Env()
    env.update({'+': lambda *a: sum(a[1:], a[0]), '*': lambda a, b: a * b, '-': lambda a, b: a - b, 'sum': torch.sum, 'x': t, 'relu': torch.relu})
    results = []
    for line in src.split(';'):
        tree, _ = parse(line.replace('(', ' ( ').replace(')', ' ) ').split())
        try:
            for node in tree:
                results.append(evaluate(node, env))
        except (NameError, IndexError, TypeError) as e:
            results.append((type(e).__name__, str(e)))
            print('error in', line)
    return [r for r in results if not callable(r)], sorted(k for k in env if len(k) > 1)

CALLS = ["('(define fact (lambda (n) (if n (* n (fact (- n 1))) 1))) (fact 4); (* (sum x) 2)', torch.arange(3.))", "('(if (sum x) (+ x x) (nope)); (relu (- 0 x))', torch.tensor([-1.,.5]))", "('(x); ()', torch.ones(1))", "('', torch.ones(2))"]
