import torch
from collections import Counter

class Life:
    RULES = {'conway': ({3}, {2, 3}), 'highlife': ({3, 6}, {2, 3})}
    def __init__(self, grid, rule='conway'):
        self.grid, (self.birth, self.survive) = grid.bool(), self.RULES[rule]
        self.age = torch.zeros_like(grid, dtype=torch.long)
    def neighbours(self):
        g = self.grid.int()
        return sum(g.roll((i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    def __iter__(self): return self
    def __next__(self):
        if not self.grid.any(): raise StopIteration
        n = self.neighbours()
        born = torch.zeros_like(self.grid)
        for b in self.birth: born |= (n == b) & ~self.grid
        stay = torch.zeros_like(self.grid)
        for s in self.survive: stay |= (n == s) & self.grid
        self.age[stay] += 1
        self.age[~stay] = 0
        self.grid = born | stay
        return self.grid.sum().item()
    def key(self): return tuple(map(tuple, self.grid.int().tolist()))

def program(grid, rule='conway', limit=6):
    life = Life(grid, rule)
    seen, pops = {life.key(): 0}, []
    period = None
    for t, pop in enumerate(life, 1):
        pops.append(pop)
        if (k := life.key()) in seen:
            period = t - seen[k]
            print(f'cycle of {period} from {seen[k]}')
            break
        seen[k] = t
        if t >= limit: break
    else:
        print('died out')
    return life.grid, life.age, pops, period, Counter(pops).most_common(), len(seen)

CALLS = ["(torch.tensor([[0,0,0,0,0],[0,0,1,0,0],[0,0,1,0,0],[0,0,1,0,0],[0,0,0,0,0]]),)", "(torch.tensor([[0,0,0,0,0],[0,0,1,0,0],[0,0,1,0,0],[0,0,1,0,0],[0,0,0,0,0]]),)", "(torch.eye(4), 'highlife', 3)", "(torch.zeros(3,3),)", "(torch.ones(2,2),)", "(torch.ones(2,2), 'x')"]
