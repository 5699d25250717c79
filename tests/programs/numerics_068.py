import torch
from functools import total_ordering, cached_property
import heapq

@total_ordering
class Task:
    def __init__(self, name, cost, deps=()):
        self.name, self.cost, self.deps = name, cost, frozenset(deps)
    def __lt__(self, o): return (self.cost.item(), self.name) < (o.cost.item(), o.name)
    def __eq__(self, o): return self.name == o.name
    def __hash__(self): return hash(self.name)
    @cached_property
    def priority(self):
        print('priority of', self.name)
        return -self.cost.item()

def topo(tasks):
    tasks = dict(tasks)
    done, order = set(), []
    while tasks:
        ready = [t for t in tasks.values() if t.deps <= done]
        if not ready: raise ValueError('cycle: ' + ','.join(sorted(tasks)))
        heapq.heapify(ready)
        t = heapq.heappop(ready)
        done.add(t.name)
        order.append(tasks.pop(t.name))
    return order

def program(costs, deps, workers=2):
    tasks = {n: Task(n, c, deps.get(n, ())) for n, c in zip('abcdef', costs)}
    try:
        order = topo(tasks)
    except ValueError as e:
        return str(e)
    free = torch.zeros(workers)
    finish = {}
    for t in order:
        w = free.argmin()
        begin = max([free[w], *(finish[d] for d in t.deps)])
        finish[t.name] = free[w] = begin + t.cost
    prio = sorted(tasks.values(), key=lambda t: t.priority)
    return [t.name for t in order], free, finish, [t.name for t in prio], max(tasks.values()).name, 'priority' in vars(order[0])

CALLS = ["(torch.tensor([3.,1.,2.]), {'a': 'bc'})", "(torch.tensor([3.,1.,2.]), {'a': 'bc', 'b': 'c'}, 1)", "(torch.ones(2), {'a': 'b', 'b': 'a'})", "(torch.ones(0), {})", "(torch.ones(2), {}, 0)"]
