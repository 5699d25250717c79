import torch
class Stack(list):
    @property
    def top(self): return self[-1]
    def apply(self, fn, n):
        args = [self.pop() for _ in range(n)]
        self.append(fn(*reversed(args)))
OPS = {'+': (torch.add, 2), '*': (torch.mul, 2), 'neg': (torch.neg, 1), 'dup': None}
def program(tokens, env):
    s = Stack()
    for t in tokens:
        if t == 'dup': s.append(s.top)
        elif t in OPS: s.apply(*OPS[t])
        else: s.append(env.get(t, t) if isinstance(t, str) else torch.tensor(t))
        if isinstance(s.top, torch.Tensor) and s.top.sum() < 0: print('neg at', t)
    return s, len(s), s.top if s else None, type(s[:1])
CALLS = ["([1., 'x', '+'], {'x': torch.ones(2)})", "(['x', 'dup', '*', 'neg'], {'x': torch.arange(3.)})", "(['+'], {})", "([], {})"]
