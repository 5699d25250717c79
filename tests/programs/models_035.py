import torch, random
from collections import deque
class SumTree:
    def __init__(self, n): self.n = n; self.t = [0.] * (2 * n)
    def __setitem__(self, i, v):
        i += self.n; self.t[i] = v
        while i > 1: i //= 2; self.t[i] = self.t[2 * i] + self.t[2 * i + 1]
    def find(self, u):
        i = 1
        while i < self.n:
            i *= 2
            if u > self.t[i]: u -= self.t[i]; i += 1
        return i - self.n
    total = property(lambda s: s.t[1])
class Replay:
    def __init__(self, cap, alpha=.6): self.data, self.tree, self.pos, self.cap, self.alpha = [], SumTree(cap), 0, cap, alpha
    def push(self, *tr, err):
        if len(self.data) < self.cap: self.data.append(tr)
        else: self.data[self.pos] = tr
        self.tree[self.pos] = (abs(err) + 1e-2) ** self.alpha
        self.pos = (self.pos + 1) % self.cap
    def sample(self, k, rng):
        if not self.data: raise ValueError('empty replay')
        idx = [self.tree.find(rng.random() * self.tree.total) for _ in range(k)]
        s, a, r = zip(*(self.data[i] for i in idx))
        w = torch.tensor([self.tree.t[i + self.tree.n] for i in idx]).pow(-.4)
        return idx, torch.stack(s), torch.tensor(a), torch.tensor(r), w / w.max()
def program(states, actions, rewards, cap, k):
    rng = random.Random(4); rb = Replay(cap); q = torch.zeros(states.shape[1], 2)
    for s, a, r in zip(states, actions, rewards):
        rb.push(s, a, r, err=(r - (s @ q)[a]).item())
    try: idx, s, a, r, w = rb.sample(k, rng)
    except (ValueError, RuntimeError) as e: return str(e)[:40], rb.pos
    for step in range(2):
        pred = (s @ q).gather(1, a[:, None])[:, 0]
        td = r - pred
        q.index_add_(1, a, .1 * (w * td) * s.T)
        for i, e in zip(idx, td): rb.tree[i] = abs(e.item())
        print(step, '%.4f' % rb.tree.total)
    return q, idx, w, rb.tree.t, rb.pos, len(rb.data), rng.randint(0, 99)
CALLS = ["(torch.eye(4), [0,1,0,1], [1.,2.,-1.,0.], 4, 3)", "(torch.ones(5,2), (1,1,0,0,1), (.5,)*5, 2, 4)", "(torch.ones(0,2), [], [], 2, 1)", "(torch.arange(6.).reshape(3,2), [0,1,0], torch.ones(3).tolist(), 8, 0)"]
