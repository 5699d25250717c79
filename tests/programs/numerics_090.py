import torch
import copy

class Node:
    __slots__ = ('x', 'parent', 'children', 'n', 'w', '__weakref__')
    def __init__(self, x, parent=None):
        self.x, self.parent, self.children = x, parent, {}
        self.n, self.w = 0, 0.0
    def ucb(self, c): return float('inf') if not self.n else self.w / self.n + c * (2 * torch.tensor(float(self.parent.n)).log().item() / self.n) ** .5
    def backup(self, r):
        node = self
        while node is not None:
            node.n += 1
            node.w += r
            node = node.parent
    def __deepcopy__(self, memo):
        new = Node(self.x.clone())
        memo[id(self)] = new
        new.n, new.w = self.n, self.w
        for a, c in self.children.items():
            k = new.children[a] = copy.deepcopy(c, memo)
            k.parent = memo.get(id(c.parent))
        return new
    def __iter__(self):
        yield self
        for c in self.children.values(): yield from c

def simulate(x, target, g, depth):
    for _ in range(depth):
        if torch.equal(x, target): return 1.0
        x = x.clone()
        x[torch.randint(len(x), (), generator=g)] += torch.randint(-1, 2, (), generator=g)
    return 1 / (1 + (x - target).abs().sum().item())

def program(start, target, iters, c=1.0):
    g = torch.Generator().manual_seed(1)
    root = Node(start)
    for it in range(iters):
        node = root
        while len(node.children) == 2 * len(start) and node.children:
            node = max(node.children.values(), key=lambda k: k.ucb(c))
        free = [a for a in range(2 * len(start)) if a not in node.children]
        a = free[0]
        x = node.x.clone()
        x[a // 2] += 1 if a % 2 else -1
        node.children[a] = node = Node(x, node)
        r = simulate(x, target, g, 2)
        node.backup(r)
        if r == 1.0: print('hit', it); break
    twin = copy.deepcopy(root)
    ok = all(k.parent is not None for k in list(twin)[1:])
    return [(k.n, round(k.w, 4), k.x) for k in root], len(list(twin)), ok, {a: k.n for a, k in root.children.items()}, twin.x is root.x

CALLS = ["(torch.tensor([0,0]), torch.tensor([2,1]), 6)", "(torch.tensor([0,0]), torch.tensor([2,1]), 6)", "(torch.tensor([0.]), torch.tensor([5.]), 5)", "(torch.tensor([0]), torch.tensor([1]), 4, 0.)", "(torch.zeros(0), torch.zeros(0), 1)"]
