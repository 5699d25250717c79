import torch
from functools import reduce, partial
from operator import mul

class VecEnv:
    def __init__(self, n, seed):
        self.g = torch.Generator()
        self.g.manual_seed(seed)
        self.x = torch.randn(n, generator=self.g)
        self.alive = torch.ones(n, dtype=torch.bool)
        self.infos = [{} for _ in range(n)]
    def step(self, a):
        noise = torch.randn(self.x.shape, generator=self.g) * 0.1
        self.x = torch.where(self.alive, self.x + a + noise, self.x)
        out = self.x.abs() > 2
        just = out & self.alive
        for i in just.nonzero().flatten().tolist():
            self.infos[i]['final'] = self.x[i].item()
        self.alive &= ~out
        return self.x, -self.x.abs() * self.alive, just

def policy(x, gain):
    return -gain * x

def program(n, seed, gain, steps=4):
    env = VecEnv(n, seed)
    act = partial(policy, gain=gain)
    rewards, lost = [], []
    x = env.x
    for t in range(steps):
        x, r, just = env.step(act(x))
        rewards.append(r)
        lost.append(just.sum().item())
        if not env.alive.any():
            print('all dead', t)
            break
    prod = reduce(mul, [r.abs().sum().item() + 1 for r in rewards], 1.0)
    return torch.stack(rewards) if rewards else None, lost, prod, env.infos, env.alive, act.keywords

CALLS = ["(3, 0, 0.5)", "(3, 0, 0.5)", "(4, 1, -3.0)", "(0, 1, 1.0)", "(1, 2, 1.0, 0)"]
