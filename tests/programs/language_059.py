import torch
from collections import deque, defaultdict

class Tree:
    def __init__(self, val, *kids): self.val, self.kids = val, kids
    @classmethod
    def parse(cls, s):
        """(a (b c) d)"""
        stack = [[]]
        for tok in s.replace('(', ' ( ').replace(')', ' ) ').split():
            if tok == '(': stack.append([])
            elif tok == ')':
                head, *kids = stack.pop()
                stack[-1].append(cls(head, *(k if isinstance(k, cls) else cls(k) for k in kids)))
            else: stack[-1].append(tok)
        (root,), = stack,
        return root if isinstance(root, cls) else cls(root)
    def bfs(self):
        q = deque([(self, 0, None)])
        while q:
            n, d, p = q.popleft()
            yield n, d, p
            q.extend((k, d + 1, n) for k in n.kids)
    def fold(self, f): return f(self.val, [k.fold(f) for k in self.kids])
    def __eq__(self, o): return isinstance(o, Tree) and (self.val, self.kids) == (o.val, o.kids)
    def __str__(self): return f"({self.val}{''.join(f' {k}' for k in self.kids)})" if self.kids else self.val

class TreeRNN(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.d = d
        self.w = torch.nn.Parameter(torch.eye(d) * 0.5)
        self.memo = {}
    def embed(self, s):
        return self.memo.setdefault(s, torch.tensor([float(ord(c) % 7) for c in s.ljust(self.d)[:self.d]]))
    def forward(self, t):
        return t.fold(lambda v, kids: torch.tanh(self.embed(v) + (torch.stack(kids).sum(0) @ self.w if kids else 0)))

def program(s, d):
    try:
        t = Tree.parse(s)
    except ValueError as e:
        print('parse', e)
        return str(e), torch.ones(d) * 2
    m = TreeRNN(d)
    h = m(t)
    h.sum().backward() if h.requires_grad else print('leaf only')
    levels = defaultdict(list)
    for n, depth, p in t.bfs(): levels[depth].append((n.val, p and p.val))
    return h.detach(), m.w.grad, dict(levels), str(t), Tree.parse(str(t)) == t, sorted(m.memo), t.fold(lambda v, k: 1 + max(k, default=0))

CALLS = ["('(a (b c) d)', 3)", "('x', 2)", "('(a', 2)", "('(f (g (h i) i) (g i))', 1)", "('', 2)", "('(q w) e', 1)"]
