import torch
from collections import deque

class FrameStack:
    def __init__(self, env, k):
        self.env, self.k = env, k
        self.frames = deque(maxlen=k)
    def __getattr__(self, name):
        return getattr(self.env, name)
    def reset(self):
        obs = self.env.reset()
        for _ in range(self.k):
            self.frames.append(obs)
        return self._obs()
    def step(self, a):
        obs, r, done, *info = self.env.step(a)
        self.frames.append(obs)
        return self._obs(), r, done, *info
    def _obs(self):
        return torch.stack(tuple(self.frames))

class Env:
    def __init__(self, goal): self.goal, self.steps = goal, 0
    def reset(self): self.pos = torch.zeros_like(self.goal); self.steps = 0; return self.pos
    def step(self, a):
        self.steps += 1
        self.pos += a.clamp(-1, 1)
        d = (self.goal - self.pos).norm()
        return self.pos, -d.item(), bool(d < .5) or self.steps > 6, {'d': d}

def rollout(env, policy):
    obs = env.reset()
    done, total = False, 0
    while not done:
        obs, r, done, info = env.step(policy(obs))
        total += r
        yield obs, total, info

def program(goal, gain, k):
    env = FrameStack(Env(goal), k)
    hist = list(rollout(env, lambda o: (goal - o[-1]) * gain))
    obs = torch.stack([o for o, *_ in hist])
    print(env.steps, len(hist))
    same = all(f is env.pos for f in env.frames)
    return obs, [round(t, 4) for _, t, _ in hist], hist[-1][2], same, env.steps

CALLS = ["(torch.tensor([2., 1.]), 0.5, 2)", "(torch.zeros(3), 1., 1)", "(torch.tensor([5.]), -1., 3)"]
