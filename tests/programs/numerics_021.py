import torch
from typing import NamedTuple
from collections import deque, defaultdict

class Step(NamedTuple):
    obs: torch.Tensor
    action: int
    reward: float
    done: bool = False

class GridWorld:
    MOVES = {0: (-1, 0), 1: (0, 1), 2: (1, 0), 3: (0, -1)}
    def __init__(self, grid):
        self.grid = grid
        self.h, self.w = grid.shape
        self.pos = (0, 0)
        self.visits = torch.zeros_like(grid, dtype=torch.int64)
    def obs(self):
        o = torch.zeros(self.h, self.w)
        o[self.pos] = 1
        return o.flatten()
    def step(self, a):
        dy, dx = self.MOVES[a]
        y = min(max(self.pos[0] + dy, 0), self.h - 1)
        x = min(max(self.pos[1] + dx, 0), self.w - 1)
        if self.grid[y, x] < 0:
            return Step(self.obs(), a, -0.5)
        self.pos = y, x
        self.visits[y, x] += 1
        r = self.grid[y, x].item()
        return Step(self.obs(), a, r, r >= 10)

def rollout(env, q, eps, horizon):
    obs = env.obs()
    for t in range(horizon):
        if torch.rand(()) < eps:
            a = torch.randint(4, ()).item()
        else:
            a = (obs @ q).argmax().item()
        s = env.step(a)
        yield obs, s
        obs = s.obs
        if s.done:
            print('goal after', t + 1)
            return t

def program(grid, eps, horizon=8, episodes=2):
    torch.manual_seed(11)
    q = torch.zeros(grid.numel(), 4)
    returns = defaultdict(float)
    last = deque(maxlen=3)
    for ep in range(episodes):
        env = GridWorld(grid)
        for obs, s in rollout(env, q, eps, horizon):
            target = s.reward + 0.9 * (s.obs @ q).max() * (not s.done)
            i = obs.argmax()
            q[i, s.action] += 0.5 * (target - q[i, s.action])
            returns[ep] += s.reward
            last.append(s)
    return q, returns, list(last), env.visits, env.pos

CALLS = ["(torch.tensor([[0.,1.,0.],[0.,-1.,10.]]), 0.5)", "(torch.tensor([[0.,1.,0.],[0.,-1.,10.]]), 0.5)", "(torch.zeros(2,2), 1.0, 5)",
 "(torch.tensor([[10.]]), 0.0, 3)", "(torch.zeros(2,2), 0.0, 0)"]
