import torch
import weakref, gc
class Node:
    __slots__ = ('value', 'children', '_parent', '__weakref__')
    def __init__(self, value): self.value, self.children, self._parent = value, [], lambda: None
    @property
    def parent(self): return self._parent()
    @parent.setter
    def parent(self, p): self._parent = weakref.ref(p); p.children.append(self)
    def __iter__(self):
        yield self
        for c in self.children: yield from c
    def root_path(self):
        n = self
        while n is not None:
            yield n.value
            n = n.parent

def program(x, links):
    nodes = [Node(v) for v in x]
    for i, p in enumerate(links):
        if p is not None: nodes[i].parent = nodes[p]
    out = []
    for n in nodes:
        path = list(n.root_path())
        s = torch.stack(path).sum(0)
        if s.sum() > 3: print('long', len(path))
        out.append(s)
    root = nodes[0]
    cache = weakref.WeakKeyDictionary({n: float(n.value.sum()) for n in nodes})
    before = len(cache)
    leaf = nodes[-1]
    del nodes, n
    order = [n.value.sum().item() for n in root]
    del root
    n = None
    return out, before, len(cache), order, leaf.parent is None, leaf.value

CALLS = ["(torch.arange(6.).view(3,2), [None, 0, 1])", "(torch.ones(3,1), [None, 0, 0])", "(torch.ones(1,2), [None])", "(torch.eye(4), [None, 0, 0, 1])"]
