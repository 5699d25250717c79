import torch
from functools import reduce
import operator as op
def rpn(expr, env):
    st = []; ops = {'+': op.add, '-': op.sub, '*': op.mul, '/': op.truediv, '@': op.matmul, '^': op.pow, '%': op.mod, '<': op.lt, '&': op.and_, 'neg': op.neg, 'abs': op.abs, 'T': op.attrgetter('T'), '[]': op.getitem, 'sum': op.methodcaller('sum'), 'max': max}
    for tok in expr.split():
        if tok in ops:
            f = ops[tok]; k = 1 if tok in ('neg', 'abs', 'T', 'sum', 'max') else 2
            if len(st) < k: raise IndexError(f'stack underflow at {tok!r}')
            args = st[-k:]; del st[-k:]
            st.append(f(*args))
        elif tok in env: st.append(env[tok])
        elif tok == 'dup': st.append(st[-1])
        elif tok == 'swap': st[-1], st[-2] = st[-2], st[-1]
        else: st.append(int(tok) if tok.lstrip('-').isdigit() else float(tok))
    return st
def program(exprs, x, y):
    env = dict(x=x, y=y); out = []
    for e in exprs:
        try: st = rpn(e, env)
        except Exception as ex:
            out.append((type(ex).__name__, str(ex)[:40])); continue
        if len(st) > 1: print('left over', len(st), '|', e)
        out.append(st)
    ts = [s[-1] for s in out if isinstance(s, list) and torch.is_tensor(s[-1])]
    return out, reduce(lambda a, b: a + b.sum(), ts, 0), env['x'] is x, op.index(3), [op.itemgetter(0, -1)(o) for o in out if len(o) > 1]
CALLS = ["(['x y + 2 *', 'x T y @', 'x 0 []', 'x abs sum 3 ^', '+'], torch.arange(4.).reshape(2,2), torch.ones(2,2))", "(['x max', 'x y <', 'x y < dup &', '1 x swap', 'foo'], torch.tensor([3.,1.]), torch.tensor([2.,2.]))", "(['5 0 /', '5 2 %', 'x 0 %', 'x neg y', '1 2 swap -'], torch.tensor([1,2]), 3)", "([], torch.ones(1), 1)"]
