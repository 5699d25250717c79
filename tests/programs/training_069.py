import torch
from abc import ABC, abstractmethod
from typing import Generic, TypeVar, Protocol, runtime_checkable, ClassVar

T = TypeVar('T')
@runtime_checkable
class Scores(Protocol):
    def score(self, x): ...

class Bandit(ABC, Generic[T]):
    pulls: ClassVar[int] = 0
    def __init__(self, n): self.n, self.counts, self.values = n, torch.zeros(n), torch.zeros(n)
    @abstractmethod
    def score(self, t): """scores for all arms"""
    @property
    @abstractmethod
    def eps(self): return 0.0
    def pull(self, t, reward):
        untried = (self.counts == 0).nonzero()
        arm = untried[0].item() if len(untried) else self.score(t).argmax().item()
        r = reward(arm)
        self.counts[arm] += 1
        self.values[arm] += (r - self.values[arm]) / self.counts[arm]
        type(self).pulls += 1
        return arm

class UCB(Bandit[int]):
    def __init__(self, n, *, c=1.0): super().__init__(n); self.c = c
    def score(self, t): return self.values + self.c * (torch.tensor(float(t)).log() / self.counts).sqrt()
    eps = 0.1
class Greedy(Bandit):
    def score(self, t): return super().score(t) or self.values
    @property
    def eps(self): return super().eps + 0.5
class Broken(Bandit): pass

def program(name, means, n):
    cls = {'ucb': UCB, 'greedy': Greedy, 'broken': Broken}[name]
    for c in (UCB, Greedy): c.pulls = 0
    try:
        b = cls(len(means))
    except TypeError as e:
        return str(e), means * 2, sorted(cls.__abstractmethods__)
    arms, regret = [], torch.zeros(())
    for t in range(1, n + 1):
        arm = b.pull(t, lambda a: means[a] + 0.1 * ((t * 7) % 3 - 1))
        arms.append(arm)
        regret += means.max() - means[arm]
        if t % 4 == 0 and b.values.max() > 1:
            print(t, 'rich', arm)
    return arms, regret, b.values, b.counts, b.eps, cls.pulls, Bandit.pulls, isinstance(b, Scores), issubclass(cls, ABC), cls.__orig_bases__[0].__args__ if '__orig_bases__' in cls.__dict__ else None, Bandit.score(b, 1)

CALLS = ["('ucb', torch.tensor([.1,.5,.3]), 8)", "('greedy', torch.tensor([1.2,.5]), 6)", "('broken', torch.ones(2), 3)", "('ucb', torch.ones(1), 0)", "('greedy', torch.ones(0), 1)"]
