import torch
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

@dataclass(frozen=True)
class State:
    pos: torch.Tensor
    vel: torch.Tensor
    t: int = 0
    def __iter__(self):
        yield self.pos
        yield self.vel

class Env(ABC):
    @abstractmethod
    def dynamics(self, s, a): ...
    def reset(self):
        self.state = State(torch.zeros(2), torch.zeros(2))
        return self.state
    def step(self, a):
        self.state = self.dynamics(self.state, a)
        return self.state, -self.state.pos.norm().item()

class Wrapper(Env):
    def __init__(self, env):
        self.env = env
    def __getattr__(self, name):
        if name.startswith('_'):
            raise AttributeError(name)
        return getattr(self.env, name)
    def dynamics(self, s, a):
        return self.env.dynamics(s, a)

class Cart(Env):
    max_speed = 2.0
    def dynamics(self, s, a):
        pos, vel = s
        vel = vel + a
        if (speed := vel.norm()) > self.max_speed:
            vel = vel * (self.max_speed / speed)
        return replace(s, pos=pos + vel, vel=vel, t=s.t + 1)

class TimeLimit(Wrapper):
    def __init__(self, env, n):
        super().__init__(env)
        self.n = n
    def step(self, a):
        s, r = super().step(a)
        return s, r, s.t >= self.n

def program(actions, n):
    env = TimeLimit(Cart(), n)
    s = env.reset()
    total, path = 0., []
    for a in actions:
        s, r, done = env.step(a)
        total += r
        path.append(s.pos)
        if done:
            break
    else:
        print('ran out of actions')
    try:
        s.t = 5
    except Exception as e:
        err = f'{type(e).__name__}: {e}'
    return s, total, path, err, env.max_speed, hasattr(env, '_private'), 'state' in vars(env.env)

CALLS = ["(torch.ones(3,2), 2)", "(torch.ones(3,2), 2)", "(torch.arange(6.).reshape(3,2), 9)", "([], 1)", "(torch.ones(3,3), 2)"]
