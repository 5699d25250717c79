import torch
from collections import deque, defaultdict
from graphlib import TopologicalSorter, CycleError

class Lazy:
    def __init__(self, fn, *deps, name=None):
        self.fn, self.deps, self.name = fn, deps, name or fn.__name__
        self.ready = False
    def __set_name__(self, owner, name): self.name = name
    def __hash__(self): return hash(self.name)
    def __eq__(self, o): return isinstance(o, Lazy) and self.name == o.name
    def __repr__(self): return f'Lazy({self.name})'
    def force(self, env):
        if not self.ready:
            self.value = self.fn(*(env[d] for d in self.deps))
            self.ready = True
            env.setdefault('_order', []).append(self.name)
        return self.value

def kahn(deps):
    indeg = {n: len(d) for n, d in deps.items()}
    users = defaultdict(set)
    for n, ds in deps.items():
        for d in ds:
            users[d].add(n)
            indeg.setdefault(d, 0)
    q = deque(sorted(n for n, k in indeg.items() if not k))
    order = []
    while q:
        n = q.popleft()
        order.append(n)
        for u in sorted(users[n]):
            indeg[u] -= 1
            if not indeg[u]: q.append(u)
    if len(order) != len(indeg):
        raise CycleError('cycle', sorted(n for n, k in indeg.items() if k))
    return order

def program(spec, env):
    nodes = {n: Lazy(getattr(torch, f), *ds, name=n) for n, (f, ds) in spec.items()}
    deps = {n: set(l.deps) for n, l in nodes.items()}
    try:
        order = kahn(deps)
    except CycleError as e:
        try:
            list(TopologicalSorter(deps).static_order())
        except ValueError as e2:
            return e.args, len(set(e2.args[1])), torch.ones(1)
    missing = [n for n in order if n not in nodes and n not in env]
    if missing:
        print('missing', *missing)
    for n in order:
        if n in nodes:
            try:
                env[n] = nodes[n].force(env)
            except KeyError as e:
                env[n] = f'failed: {e.args[0]}'
    return env, order, [repr(l) for l in nodes.values()], Lazy(len) == Lazy(len), len({*nodes.values()})

CALLS = ["({'c': ('add', ['a', 'b']), 'd': ('relu', ['c'])}, {'a': torch.ones(2), 'b': -2})", "({'a': ('relu', ['b']), 'b': ('relu', ['a'])}, {})", "({}, {'x': torch.ones(1)})",
 "({'z': ('neg', ['q'])}, {})", "({'m': ('matmul', ['a', 'a']), 'n': ('sub', ['m', 'a'])}, {'a': torch.eye(2) * 3})"]
