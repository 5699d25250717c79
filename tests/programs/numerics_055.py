import torch
from typing import Iterator

class Maze:
    def __init__(self, h, w, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.walls = torch.ones(h, w, dtype=torch.bool)
        self.carved = []
    def around(self, y, x) -> Iterator[tuple]:
        for i in torch.randperm(4, generator=self.g).tolist():
            dy, dx = [(0, 2), (2, 0), (0, -2), (-2, 0)][i]
            ny, nx = y + dy, x + dx
            if 0 <= ny < self.walls.size(0) and 0 <= nx < self.walls.size(1):
                yield ny, nx
    def carve(self, y=0, x=0):
        self.walls[y, x] = False
        for ny, nx in self.around(y, x):
            if self.walls[ny, nx]:
                self.walls[(y + ny) // 2, (x + nx) // 2] = False
                self.carved.append((ny, nx))
                self.carve(ny, nx)
        return self

def flood(walls):
    dist = torch.full(walls.shape, -1)
    front = torch.zeros_like(walls)
    front[0, 0] = True
    d = 0
    while front.any():
        dist[front] = d
        nxt = torch.zeros_like(front)
        nxt[1:] |= front[:-1]; nxt[:-1] |= front[1:]
        nxt[:, 1:] |= front[:, :-1]; nxt[:, :-1] |= front[:, 1:]
        front = nxt & ~walls & (dist < 0)
        d += 1
    return dist, d

def program(h, w, seed=0):
    m = Maze(h, w, seed).carve()
    dist, d = flood(m.walls)
    text = '\n'.join(''.join('#' if c else ' ' for c in row) for row in m.walls.tolist())
    print(text)
    far = divmod(dist.argmax().item(), w)
    return m.walls, dist, d, far, m.carved, text.count('#')

CALLS = ["(3, 5)", "(3, 5)", "(5, 5, 7)", "(1, 1)", "(0, 3)"]
