import torch
from typing import Generic, TypeVar
import operator

T = TypeVar('T')

class Stack(Generic[T]):
    def __init__(self, *items: T): self._items = list(items)
    def __class_getitem__(cls, p):
        r = super().__class_getitem__(p)
        NAMES.append(getattr(p, '__name__', str(p)))
        return r
    def push(self, x: T) -> 'Stack[T]':
        self._items.append(x); return self
    def pop(self) -> T: return self._items.pop()
    def __reversed__(self): return iter(self._items[::-1])
    def __iter__(self): return iter(self._items)
    def __length_hint__(self): return len(self._items)
    def __copy__(self): return type(self)(*self._items)

NAMES = []
PREC = {'+': 1, '-': 1, '*': 2, '^': 3}

def to_rpn(tokens):
    out, ops = [], Stack[str]()
    for t in tokens:
        if t in PREC:
            while ops._items and ops._items[-1] != '(' and (PREC[ops._items[-1]] > PREC[t] or PREC[ops._items[-1]] == PREC[t] and t != '^'):
                out.append(ops.pop())
            ops.push(t)
        elif t == '(':
            ops.push(t)
        elif t == ')':
            while (o := ops.pop()) != '(':
                out.append(o)
        else:
            out.append(t)
    out.extend(reversed(ops))
    return out

def evaluate(rpn, env):
    s = Stack()
    fns = dict(zip('+-*^', (operator.add, operator.sub, operator.mul, operator.pow)))
    for t in rpn:
        if t in fns:
            b, a = s.pop(), s.pop()
            s.push(fns[t](a, b))
        else:
            s.push(env[t] if t in env else float(t))
    [res] = s
    return res

def program(src, env):
    NAMES.clear()
    try:
        rpn = to_rpn(src.split())
        r = evaluate(rpn, env)
    except IndexError as e:
        print('unbalanced:', e)
        return src, str(e), NAMES
    except ValueError as e:
        return str(e), Stack[int].__origin__ is Stack, NAMES
    return r, rpn, NAMES, torch.as_tensor(r).sum(), Stack[int] == Stack[int], operator.length_hint(Stack(1, 2)), Stack.__parameters__

CALLS = ["('x + y * ( 2 - x ) ^ 2', {'x': torch.arange(3.), 'y': torch.ones(3)})", "('1 + 2 ^ 3 ^ 0', {})", "('x )', {'x': torch.ones(1)})", "('x y', {'x': torch.ones(1), 'y': 2})", "('', {})", "('x * q', {'x': torch.ones(1)})"]
