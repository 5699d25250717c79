import torch
import weakref
import gc

class Node:
    count = 0
    def __init__(self, value, parent=None):
        self.value, self.children = value, []
        self._parent = weakref.ref(parent) if parent is not None else None
        if parent is not None:
            parent.children.append(self)
        Node.count += 1
        weakref.finalize(self, EVENTS.append, f'dead {value.sum().item():.0f}').atexit = False

    @property
    def parent(self):
        return self._parent() if self._parent else None

    @property
    def depth(self):
        return 0 if self.parent is None else 1 + self.parent.depth

    def walk(self):
        yield self
        for c in self.children:
            yield from c.walk()

EVENTS = []
CACHE = weakref.WeakValueDictionary()

def build(x, depth):
    root = Node(x)
    CACHE['root'] = root
    def grow(n, d):
        if d == 0 or n.value.numel() < 2:
            return
        h = n.value.numel() // 2
        for part in (n.value[:h], n.value[h:]):
            grow(Node(part * 2, n), d - 1)
    grow(root, depth)
    return root

def program(x, depth):
    EVENTS.clear()
    Node.count = 0
    root = build(x, depth)
    nodes = list(root.walk())
    total = sum(n.value.sum() for n in nodes)
    depths = [n.depth for n in nodes]
    leaf = nodes[-1]
    in_cache = CACHE.get('root') is root
    n = Node.count
    print('built', n)
    del root, nodes
    gc.collect()
    alive = 'root' in CACHE
    return total, depths, in_cache, n, alive, leaf.parent is None, list(EVENTS), leaf.value

CALLS = ["(torch.arange(8.), 2)", "(torch.arange(3.), 3)", "(torch.ones(1), 2)", "(torch.empty(0), 1)", "(torch.arange(4.), 0)"]
