import torch, random

class GA:
    def __init__(self, target, size, seed, elite=1):
        self.t, self.rng, self.size, self.elite, self.log = target, random.Random(seed), size, elite, []
        self.pop = [[self.rng.randint(0, 1) for _ in range(len(target))] for _ in range(size)]
    def fitness(self): return (torch.tensor(self.pop, dtype=torch.long).reshape(self.size, -1) == self.t).sum(1)
    def select(self, f):
        k = min(3, self.size)
        i = max(self.rng.sample(range(self.size), k), key=lambda i: (f[i], -i))
        return self.pop[i]
    def cross(self, a, b):
        p = self.rng.randrange(1, len(a)) if len(a) > 1 else 0
        return a[:p] + b[p:]
    def mutate(self, g, rate=.05): return [1 - x if self.rng.random() < rate else x for x in g]
    def __iter__(self):
        while True:
            f = self.fitness()
            order = f.argsort(descending=True, stable=True).tolist()
            yield f[order[0]], f.float().mean(), self.pop[order[0]]
            fl = f.tolist()
            nxt = [self.pop[i] for i in order[:self.elite]]
            nxt += (self.mutate(self.cross(self.select(fl), self.select(fl))) for _ in range(self.size - len(nxt)))
            self.pop = nxt

def program(target, size, gens, seed):
    try: ga = GA(target, size, seed)
    except TypeError as e: return str(e), target + 1
    hist = []
    for g, (best, mean, ind) in enumerate(ga):
        hist.append((best, mean))
        if best == len(target): print('solved in', g); break
        if g >= gens: break
    else: hist.append('never')
    return hist, ind, torch.tensor(ind) ^ target.long() if len(ind) else None, any(ind is p for p in ga.pop), ga.rng.random()

CALLS = ["(torch.tensor([1,0,1,1,0,0,1,0]), 8, 5, 42)", "(torch.tensor([1]), 2, 3, 0)", "(torch.zeros(0, dtype=torch.long), 2, 1, 0)", "(torch.ones(6), 4, 4, 'seed')", "(torch.tensor(1), 2, 2, 2)"]
