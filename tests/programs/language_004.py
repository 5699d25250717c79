import torch
from collections import namedtuple, defaultdict, deque

Transition = namedtuple('Transition', 'obs action reward done', defaults=(0.0, False))

class ReplayBuffer:
    __slots__ = ('data', 'rng', 'pushed', '__weakref__')

    def __init__(self, capacity, seed):
        self.data = deque(maxlen=capacity)
        self.rng = torch.Generator().manual_seed(seed)
        self.pushed = 0

    def __len__(self):
        return len(self.data)

    def push(self, *args, **kw):
        self.data.append(Transition(*args, **kw))
        self.pushed += 1

    def sample(self, n):
        if n > len(self):
            raise ValueError(f'want {n}, have {len(self)}')
        idx = torch.randperm(len(self), generator=self.rng)[:n].tolist()
        batch = Transition(*zip(*(self.data[i] for i in idx)))
        return batch._replace(obs=torch.stack(batch.obs), reward=torch.tensor(batch.reward))

class GridEnv:
    MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))
    def __init__(self, n):
        self.n, self.pos = n, (0, 0)
    def obs(self):
        o = torch.zeros(self.n, self.n)
        o[self.pos] = 1
        return o.flatten()
    def step(self, a):
        dy, dx = self.MOVES[a]
        y, x = self.pos[0] + dy, self.pos[1] + dx
        if not (0 <= y < self.n and 0 <= x < self.n):
            return self.obs(), -1.0, False
        self.pos = y, x
        done = self.pos == (self.n - 1,) * 2
        return self.obs(), (10.0 if done else -0.1), done

def program(n, capacity, actions, batch):
    env, buf = GridEnv(n), ReplayBuffer(capacity, 7)
    q = defaultdict(lambda: torch.zeros(4))
    total = 0
    for a in actions:
        pos = env.pos
        o, r, done = env.step(a)
        buf.push(o, a, reward=r, done=done)
        target = r + (0 if done else 0.9 * q[env.pos].max())
        q[pos][a] += 0.5 * (target - q[pos][a])
        total += r
        if done:
            print(f'done after {buf.pushed}, total {total:.1f}')
            break
    try:
        b = buf.sample(batch)
    except ValueError as e:
        b = str(e)
    return b, dict(q), round(total, 3), len(buf), env.pos

CALLS = ["(2, 4, [0, 1], 2)", "(3, 2, [0, 0, 1, 2, 3, 1, 1], 2)", "(2, 4, [], 1)", "(1, 3, [0, 1, 2], 3)", "(3, 5, [3, 3, 0, 9], 1)"]
