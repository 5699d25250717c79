import torch, math
class Node:
    count = 0
    def __init__(self, state, parent=None, move=None, prior=1.):
        type(self).count += 1
        self.state, self.parent, self.move, self.prior = state, parent, move, prior
        self.kids, self.n, self.w = [], 0, 0.
    q = property(lambda self: self.w / self.n if self.n else 0.)
    def ucb(self, c): return self.q + c * self.prior * math.sqrt(self.parent.n) / (1 + self.n)
    def select(self, c):
        node = self
        while node.kids: node = max(node.kids, key=lambda k: k.ucb(c))
        return node
    def expand(self, probs):
        self.kids += (Node(self.state - m, self, m, p) for m, p in enumerate(probs, 1) if m <= self.state)
    def backup(self, v):
        if self.parent is not None: self.parent.backup(-v)
        self.n += 1; self.w += v
    def __repr__(self, depth=0):
        return '  ' * depth + f'{self.move}:{self.n}:{self.w:.2f}' + ''.join('\n' + k.__repr__(depth + 1) for k in self.kids if k.n)
def evaluate(state, w):
    f = torch.stack([torch.tensor(float(state % k)) for k in (2, 3, 4)])
    return (w @ f).softmax(-1), torch.tanh(f.sum() - 2)
def program(state, w, sims, c):
    root = Node(state); vals = []
    for _ in range(sims):
        leaf = root.select(c)
        if leaf.state == 0: v = -1.
        else:
            p, t = evaluate(leaf.state, w)
            leaf.expand(p.tolist()); v = t.item()
            if t > .9: vals.append(leaf.state)
        leaf.backup(v)
    best = max(root.kids, key=lambda k: k.n, default=None)
    visits = torch.tensor([k.n for k in root.kids], dtype=torch.float)
    print(root)
    return best and best.move, visits / visits.sum(), Node.count, vals, root.n, root.parent
CALLS = ["(7, torch.arange(9.).reshape(3,3).sin(), 12, 1.4)", "(1, torch.eye(3), 3, 0.5)", "(0, torch.eye(3), 2, 1)", "(5, torch.eye(3), 0, 1)"]
