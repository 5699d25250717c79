import torch
from collections import defaultdict
GRID = ["S..#", ".#..", "...G"]
MOVES = dict(zip('UDLR', [(-1, 0), (1, 0), (0, -1), (0, 1)]))
class Env:
    def __init__(self, grid):
        self.cells = {(r, c): ch for r, row in enumerate(grid) for c, ch in enumerate(row)}
        self.start = next((p for p, ch in self.cells.items() if ch == 'S'), None)
    def reset(self): self.pos = self.start; return self.pos
    def step(self, a):
        dr, dc = MOVES[a]; p = self.pos[0] + dr, self.pos[1] + dc
        match self.cells.get(p, '#'):
            case '#': return self.pos, -1., False
            case 'G': self.pos = p; return p, 10., True
            case _: self.pos = p; return p, -.1, False
def program(grid, episodes, seed, lr):
    env = Env(grid or GRID); g = torch.Generator().manual_seed(seed)
    Q = defaultdict(lambda: torch.zeros(4)); returns, names = [], list(MOVES)
    for ep in range(episodes):
        s, total = env.reset(), 0.
        if s is None: raise ValueError('no start')
        for t in range(15):
            a = torch.randint(4, (1,), generator=g).item() if torch.rand(1, generator=g) < 1 / (ep + 1) else Q[s].argmax().item()
            s2, r, d = env.step(names[a])
            Q[s][a] += lr * (r + .9 * Q[s2].max() * (not d) - Q[s][a])
            s, total = s2, total + r
            if d: print('goal', ep, t); break
        returns.append(round(total, 3))
    policy = {s: names[int(q.argmax())] for s, q in sorted(Q.items()) if q.any()}
    picture = '\n'.join(''.join(policy.get((r, c), ch) for c, ch in enumerate(row)) for r, row in enumerate(grid or GRID))
    return returns, policy, picture, torch.stack([Q[k] for k in sorted(Q)]) if Q else None, len(Q)
CALLS = ["(None, 6, 0, .5)", "(['SG'], 3, 1, torch.tensor(.5))", "(['..'], 1, 0, .1)", "(None, 0, 0, .5)", "(['S#','#G'], 2, 3, 1)"]
