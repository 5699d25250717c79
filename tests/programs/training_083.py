import torch

class Interp:
    """stack machine over tensors, programmable by text"""
    words = {}
    def __init__(self): self.stack, self.vars, self.depth = [], {}, 0
    def word(name, n, words=words):
        def deco(f): words[name] = (n, f); return f
        return deco
    @word('+', 2)
    def _(self, a, b): return a + b
    @word('*', 2)
    def _(self, a, b): return a * b
    @word('@', 2)
    def _(self, a, b): return a @ b
    @word('dup', 1)
    def _(self, a): self.stack.append(a); return a
    @word('swap', 2)
    def _(self, a, b): self.stack.append(b); return a
    @word('drop', 1)
    def _(self, a): return None
    @word('.', 1)
    def _(self, a): print(a.tolist() if isinstance(a, torch.Tensor) else a)
    del word
    def run(self, src):
        toks = src.split()
        pc, loops = 0, []
        while pc < len(toks):
            t = toks[pc]; pc += 1
            if t in self.words:
                n, f = self.words[t]
                if len(self.stack) < n: raise IndexError(f'{t}: stack underflow at {pc}')
                args = self.stack[len(self.stack) - n:]; del self.stack[len(self.stack) - n:]
                if (r := f(self, *args)) is not None: self.stack.append(r)
            elif t == 'begin': loops.append(pc)
            elif t == 'until':
                if self.stack.pop(): loops.pop()
                else: pc = loops[-1]
            elif t.startswith('!'): self.vars[t[1:]] = self.stack.pop()
            elif t.startswith('$'): self.stack.append(self.vars[t[1:]])
            elif t.startswith('~'): self.stack.append(getattr(torch, t[1:])(self.stack.pop()))
            elif t.startswith('>'): self.stack.append((self.stack.pop() > float(t[1:])).all())
            else: self.stack.append(torch.tensor(float(t)))
        return self

def program(src, **vars_):
    it = Interp()
    it.vars.update(vars_)
    same = dict(it.vars)
    try:
        it.run(src)
        err = None
    except (IndexError, KeyError, ValueError, AttributeError, RuntimeError) as e:
        err = type(e).__name__, str(e)[:40]
    moved = [k for k in same if it.vars.get(k) is not same[k]]
    x = it.vars.get('x', torch.ones(1))
    return it.stack, err, sorted(it.vars), moved, hasattr(Interp, 'word'), x * 2, any(s is x for s in it.stack), Interp._.__qualname__

def main(src, x): return program(src, x=x)
_impl = program
def program(src, x): return _impl(src, x=x, one=torch.ones_like(x))

CALLS = ["('$x dup + !y $y ~sum .', torch.arange(3.))", "('$x begin 2 * dup >50 until', torch.ones(2))", "('$x +', torch.ones(2))", "('$x $one swap . $z', torch.ones(2))", "('$x dup @ ~frob', torch.eye(2))", "('$x $x @ !x 1 2 3', torch.ones(2,3))", "('', torch.zeros(0))"]
