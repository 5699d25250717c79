import torch
import random
from collections import namedtuple, deque

Transition = namedtuple('Transition', ('state', 'action', 'reward', 'next_state'))

class ReplayMemory(object):
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)
    def push(self, *args):
        self.memory.append(Transition(*args))
    def sample(self, batch_size, rng):
        return rng.sample(self.memory, batch_size)
    def __len__(self):
        return len(self.memory)

def optimize(memory, Q, rng, batch_size, gamma=0.9):
    if len(memory) < batch_size:
        return
    batch = Transition(*zip(*memory.sample(batch_size, rng)))
    mask = torch.tensor(tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool)
    state = torch.cat(batch.state)
    action = torch.cat(batch.action)
    q = (state @ Q).gather(1, action)
    nxt = torch.zeros(batch_size)
    if mask.any():
        nxt[mask] = (torch.cat([s for s in batch.next_state if s is not None]) @ Q).max(1).values
    target = nxt * gamma + torch.cat(batch.reward)
    loss = torch.nn.functional.smooth_l1_loss(q, target.unsqueeze(1))
    g, = torch.autograd.grad(loss, Q)
    with torch.no_grad():
        Q -= 0.1 * g
    return loss.item()

def program(n, steps, batch_size, seed):
    rng = random.Random(seed)
    memory = ReplayMemory(6)
    Q = torch.zeros(n, 2, requires_grad=True)
    eye, losses, state = torch.eye(n), [], 0
    for t in range(steps):
        row = eye[state][None]
        a = (row @ Q).max(1).indices.view(1, 1) if rng.random() > .3 else torch.tensor([[rng.randrange(2)]])
        state = state + (1 if a.item() else -1)
        done = not 0 <= state < n
        r = torch.tensor([1.0 if state >= n else -0.1])
        memory.push(row, a, r, None if done else eye[state][None])
        if done:
            print('episode', t)
            state = 0
        if (l := optimize(memory, Q, rng, batch_size)) is not None:
            losses.append(l)
    return Q, losses, len(memory), memory.memory[-1] if memory else None

CALLS = ["(3, 8, 2, 0)", "(1, 4, 3, 5)", "(4, 0, 1, 1)", "(3, 8, 2, 1)"]
