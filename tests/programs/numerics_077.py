import torch
from enum import Enum
from dataclasses import dataclass

class Op(Enum):
    ADD = '+', lambda a, b: a + b
    MUL = '*', lambda a, b: a * b
    SUB = '-', lambda a, b: a - b
    def __init__(self, sym, fn): self.sym, self.fn = sym, fn
    def __call__(self, *a): return self.fn(*a)
    @classmethod
    def of(cls, s): return next((o for o in cls if o.sym == s), None)

@dataclass(frozen=True)
class Num:
    v: float
@dataclass(frozen=True)
class Var:
    name: str
@dataclass(frozen=True)
class Bin:
    op: Op
    l: object
    r: object

def parse(tokens):
    stack = []
    for t in tokens:
        if op := Op.of(t):
            r, l = stack.pop(), stack.pop()
            stack.append(Bin(op, l, r))
        else:
            stack.append(Num(float(t)) if t.lstrip('-').replace('.', '').isdigit() else Var(t))
    (e,) = stack
    return e

def ev(e, env, memo):
    if e in memo: return memo[e]
    match e:
        case Num(v): out = torch.tensor(v)
        case Var(name): out = env[name]
        case Bin(Op.MUL, Num(0.0), _) | Bin(Op.MUL, _, Num(0.0)): out = torch.zeros(())
        case Bin(op, l, r): out = op(ev(l, env, memo), ev(r, env, memo))
    memo[e] = out
    return out

def program(text, env):
    memo = {}
    try:
        tree = parse(text.split())
        val = ev(tree, env, memo)
    except (ValueError, IndexError, KeyError) as e:
        return type(e).__name__, str(e), len(memo)
    if val.sum() < 0: print('negative', tree.op.name if isinstance(tree, Bin) else '')
    return val, len(memo), repr(tree) if not isinstance(tree, Bin) else tree.op, [v for v in memo.values()], hash(tree) == hash(parse(text.split()))

CALLS = ["('x 2 * y +', {'x': torch.ones(2), 'y': torch.arange(2.)})", "('x 2 * y +', {'x': torch.ones(2), 'y': torch.arange(2.)})", "('x x - z 0 * -', {'x': torch.ones(1)})", "('x x x * * 9 -', {'x': torch.ones(1)})", "('x +', {})", "('x', {})"]
