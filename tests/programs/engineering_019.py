import torch
import copy

class Node:
    def __init__(self, state, prior=1.0, parent=None):
        self.state, self.prior, self.parent = state, prior, parent
        self.children = {}
        self.N, self.W = 0, 0.0
    @property
    def Q(self):
        return self.W / self.N if self.N else 0.0
    def ucb(self, c=1.4):
        n = self.parent.N if self.parent else 1
        return self.Q + c * self.prior * n ** .5 / (1 + self.N)
    def expand(self, priors):
        for a, p in enumerate(priors.tolist()):
            nxt = self.state.clone()
            nxt[a] += 1
            self.children[a] = Node(nxt, p, self)
    def __lt__(self, other):
        return self.ucb() < other.ucb()

def evaluate(state, w):
    v = torch.tanh((state * w).sum())
    return (state + w).softmax(0), v.item()

def program(w, sims):
    root = Node(torch.zeros_like(w))
    for i in range(sims):
        node, path = root, [root]
        while node.children:
            node = max(node.children.values())
            path.append(node)
        priors, value = evaluate(node.state, w)
        if node.state.sum() < 2:
            node.expand(priors)
        for depth, node in enumerate(reversed(path)):
            node.N += 1
            node.W += value if depth % 2 == 0 else -value
    visits = torch.tensor([c.N for c in root.children.values()], dtype=torch.float)
    pi = visits / visits.sum().clamp(min=1)
    best = max(root.children, key=lambda a: root.children[a].N) if root.children else None
    print('best', best, root.N)
    return pi, best, root.Q, root.W, [c.state for c in root.children.values() if c.N > 1]

CALLS = ["(torch.tensor([.1,.5,-.3]), 8)", "(torch.tensor([1.]), 3)", "(torch.linspace(-1,1,4), 12)", "(torch.ones(2), 0)"]
