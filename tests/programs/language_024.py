import torch
import random
import copy

class Bandit:
    def __init__(self, seed, arms):
        self.rng = random.Random(seed)
        self.means = [self.rng.gauss(0, 1) for _ in range(arms)]
    def pull(self, a): return self.means[a] + self.rng.uniform(-.1, .1)

class Agent:
    best = property(lambda self: self.q.argmax().item())
    def __init__(self, arms, eps, rng):
        self.q, self.n = torch.zeros(arms), torch.zeros(arms, dtype=torch.long)
        self.eps, self.rng = eps, rng
    def act(self):
        if self.rng.random() < self.eps:
            return self.rng.randrange(len(self.q))
        return self.best
    def learn(self, a, r):
        self.n[a] += 1
        self.q[a] += (r - self.q[a]) / self.n[a]
    def __deepcopy__(self, memo):
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        new.__dict__.update({k: (copy.deepcopy(v, memo) if k != 'rng' else v) for k, v in vars(self).items()})
        return new

def program(seed, arms, steps, eps):
    env = Bandit(seed, arms)
    ag = Agent(arms, eps, random.Random(seed + 1))
    clones, rewards = [], []
    for t in range(steps):
        a = ag.act()
        r = env.pull(a)
        ag.learn(a, r)
        rewards.append(r)
        if t % 4 == 3:
            clones.append(copy.deepcopy(ag))
            ag.eps *= 0.5
            print(f'{t}: arm {ag.best}')
    st = env.rng.getstate()
    x = env.rng.choices('abc', weights=[1, 2, 3], k=3)
    env.rng.setstate(st)
    y = env.rng.choices('abc', weights=[1, 2, 3], k=3)
    perm = list(range(arms)); ag.rng.shuffle(perm)
    return ag.q, ag.n, [c.q.sum() for c in clones], [c.rng is ag.rng for c in clones], round(sum(rewards), 4), x == y, perm, ag.eps, env.rng.sample(range(10), 2)

CALLS = ["(0, 3, 9, 0.5)", "(1, 2, 4, 0.0)", "(2, 4, 0, 1.0)", "(3, 1, 3, 1.0)", "(0, 0, 1, 0.0)"]
