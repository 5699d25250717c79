import torch, abc
class Bandit(abc.ABC):
    registry = {}
    def __init_subclass__(cls, **k): super().__init_subclass__(**k); Bandit.registry[cls.__name__.lower()] = cls
    def __init__(self, n): self.n = torch.zeros(n); self.q = torch.zeros(n); self.t = 0
    @abc.abstractmethod
    def choose(self): ...
    def update(self, a, r): self.t += 1; self.n[a] += 1; self.q[a] += (r - self.q[a]) / self.n[a]
class Greedy(Bandit):
    eps = .1
    def __init__(self, n, seed=0): super().__init__(n); self.g = torch.Generator().manual_seed(seed)
    def choose(self):
        if torch.rand((), generator=self.g).item() < self.eps: return torch.randint(len(self.q), (), generator=self.g).item()
        return self.q.argmax().item()
class UCB(Bandit):
    def choose(self):
        if (z := (self.n == 0).nonzero().flatten()).numel(): return z[0].item()
        return int((self.q + (2 * torch.tensor(self.t + 1.).log() / self.n).sqrt()).argmax())
class Broken(Bandit): pass
def program(means, name, steps):
    try: b = Bandit.registry[name](len(means))
    except TypeError as e: return 'abstract' in str(e), sorted(Bandit.registry)
    except KeyError as e: return e.args, Bandit.registry.keys() - {name}
    picks, regret = [], 0.
    for s in range(steps):
        a = b.choose(); r = means[a] + .1 * torch.sin(torch.tensor(float(s)))
        b.update(a, r); picks.append(a); regret += (means.max() - means[a]).item()
        if s and s % 5 == 0: print(s, b.q.tolist().index(b.q.max().item()))
    return picks, b.q, b.n, round(regret, 4), b.t, isinstance(b, Bandit), b.choose.__func__ is type(b).choose
CALLS = ["(torch.tensor([.1,.5,.3]), 'ucb', 12)", "(torch.tensor([.1,.5,.3]), 'greedy', 12)", "(torch.ones(2), 'broken', 2)", "(torch.ones(2), 'thompson', 2)", "(torch.ones(1), 'ucb', 0)"]
