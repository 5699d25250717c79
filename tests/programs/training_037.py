import torch, copy, pickle, io
from torch import nn

class Node:
    def __init__(self, value, parent=None):
        self.value, self.parent, self.children = value, parent, []
        if parent is not None:
            parent.children.append(self)
    def __deepcopy__(self, memo):
        new = type(self)(copy.deepcopy(self.value, memo))
        memo[id(self)] = new
        new.children = copy.deepcopy(self.children, memo)
        new.parent = memo.get(id(self.parent))
        return new
    def __reduce__(self):
        return (Node, (self.value,), {'children': self.children})
    def walk(self, depth=0):
        yield depth, self
        for c in self.children:
            yield from c.walk(depth + 1)

def program(x, n):
    root = Node(x)
    cur = root
    for i in range(n):
        cur = Node(x if i % 2 else x + i, cur)
        Node(cur.value * 2, root)
    twin = copy.deepcopy(root)
    total = sum((v.value.sum() for _, v in twin.walk()), torch.zeros(()))
    for d, v in root.walk():
        if d % 2 == 1:
            v.value.add_(1)
    print([(d, round(v.value.sum().item(), 2)) for d, v in twin.walk()])
    shared = [any(a.value is b.value for _, b in root.walk() if b is not a) for _, a in root.walk()]
    shared2 = [any(a.value is b.value for _, b in twin.walk() if b is not a) for _, a in twin.walk()]
    lin = nn.Linear(2, 1); lin.extra = {'x': x, 'w': lin.weight}
    with torch.no_grad(): lin.weight.fill_(1); lin.bias.zero_()
    l2 = copy.deepcopy(lin)
    l3 = copy.copy(lin)
    l3.weight = nn.Parameter(torch.zeros(1, 2))
    same = l2.extra['w'] is l2.weight, l2.extra['x'] is x, l3.extra is lin.extra, lin.weight is l3.weight
    try:
        copy.deepcopy(x.clone().requires_grad_() * 2)
    except RuntimeError as e:
        same += (str(e)[:30],)
    return total, [v.value for _, v in root.walk()], shared, shared2, same, x, twin.children and twin.children[0].parent is twin

CALLS = ["(torch.ones(2), 3)", "(torch.arange(2.), 0)", "(torch.ones(2,2), 4)", "(torch.ones(0), 1)", "(torch.ones(2), 1)"]
