import torch
import math

class UCB:
    def __init__(self, k, c=1.0):
        self.counts = torch.zeros(k, dtype=torch.long)
        self.values = torch.zeros(k)
        self.c = c
        self.t = 0
    def __call__(self):
        self.t += 1
        untried = (self.counts == 0).nonzero()
        if len(untried):
            return int(untried[0])
        bonus = self.c * torch.sqrt(math.log(self.t) / self.counts)
        return int(torch.argmax(self.values + bonus))
    def update(self, arm, r):
        self.counts[arm] += 1
        self.values[arm] += (r - self.values[arm]) / self.counts[arm]

class Thompson(UCB):
    def __call__(self):
        self.t += 1
        a = self.values.clamp(0, 1) * self.counts + 1
        b = (1 - self.values.clamp(0, 1)) * self.counts + 1
        return torch.distributions.Beta(a, b).sample().argmax().item()

def program(kind, means, steps):
    g = torch.Generator().manual_seed(42)
    torch.manual_seed(1)
    agent = {'ucb': UCB, 'ts': Thompson}[kind](len(means))
    regret = []
    for _ in range(steps):
        arm = agent()
        r = torch.bernoulli(means[arm], generator=g).item()
        agent.update(arm, r)
        regret.append((means.max() - means[arm]).item())
    best = agent.counts.argmax().item()
    print(f'{kind}: best arm {best}, regret {sum(regret):.2f}')
    return agent.counts, agent.values, regret, agent.t

CALLS = ["('ucb', torch.tensor([.1,.9,.5]), 8)", "('ucb', torch.tensor([.1,.9,.5]), 8)", "('ts', torch.tensor([.1,.9]), 6)", "('ts', torch.tensor([]), 0)", "('eps', torch.ones(1), 1)"]
