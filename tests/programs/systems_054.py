import torch, heapq
from collections import defaultdict
from graphlib import TopologicalSorter, CycleError

class Job:
    _all = {}
    def __new__(cls, name, *a, **k):
        if name in cls._all: return cls._all[name]
        self = super().__new__(cls); cls._all[name] = self; self.fresh = True
        return self
    def __init__(self, name, cost=1, needs=()):
        if not getattr(self, 'fresh', False): self.touched = getattr(self, 'touched', 0) + 1; return
        self.name, self.cost, self.needs, self.state, self.fresh = name, cost, tuple(needs), 'new', False
    def __call__(self, inputs):
        self.state = 'running'
        r = sum(inputs, torch.zeros(2)) * self.cost + 1
        if r.max() > 50: self.state = 'failed'; raise OverflowError(self.name)
        self.state = 'done'
        return r
    def __lt__(self, o): return self.name < o.name
    def __repr__(self): return f'Job<{self.name}:{self.state}>'

def schedule(jobs, workers):
    deg = {j: len(j.needs) for j in jobs}; users = defaultdict(list)
    for j in jobs:
        for n in j.needs: users[Job(n)].append(j)
    ready = [(-j.cost, j) for j in jobs if not deg[j]]; heapq.heapify(ready)
    running, t, results, line = [], 0, {}, []
    while ready or running:
        while ready and len(running) < workers:
            _, j = heapq.heappop(ready); heapq.heappush(running, (t + j.cost, j)); line.append(f'{t:>3}+{j.name}')
        t, j = heapq.heappop(running)
        try: results[j.name] = j([results[n] for n in j.needs if n in results])
        except OverflowError as e: line.append(f'{t:>3}!{e}'); results[j.name] = torch.zeros(2)
        for u in users[j]:
            deg[u] -= 1
            if not deg[u]: heapq.heappush(ready, (-u.cost, u))
    return results, t, line

def program(spec, workers, x):
    Job._all.clear()
    jobs = [Job(n, c, d) for n, (c, d) in spec.items()]
    try: order = list(TopologicalSorter({j.name: j.needs for j in jobs}).static_order())
    except CycleError as e: print(e.args[0]); order = sorted(e.args[1][1:])
    try: res, t, line = schedule(jobs, workers)
    except AttributeError as e: return str(e), order
    left = [j for j in jobs if j.state == 'new']
    return {k: v * x for k, v in res.items()}, t, line, sorted(order), left, [getattr(j, 'touched', 0) for j in jobs], Job('a') is Job('a'), len(Job._all)

CALLS = ["({'a': (2, ()), 'b': (3, ('a',)), 'c': (1, ('a',)), 'd': (4, ('b','c'))}, 2, torch.ones(2))", "({'a': (1, ('b',)), 'b': (1, ('a',)), 'c': (60, ())}, 1, torch.arange(2.))", "({}, 1, torch.ones(2))", "({'a': (9, ()), 'b': (9, ('a',)), 'z': (9, ('b',))}, 3, torch.tensor(2.))"]
