import torch
from collections import deque, namedtuple

Pos = namedtuple('Pos', 'r c')
Pos.__add__ = lambda a, b: Pos(a.r + b.r, a.c + b.c)
DIRS = {'N': Pos(-1, 0), 'S': Pos(1, 0), 'E': Pos(0, 1), 'W': Pos(0, -1)}

class Grid:
    def __init__(self, text):
        lines = text.strip('\n').split('\n')
        self.w = max(map(len, lines))
        self.cells = {Pos(r, c): ch for r, l in enumerate(lines) for c, ch in enumerate(l.ljust(self.w))}
        self.h = len(lines)
    def __contains__(self, p): return self.cells.get(p, '#') != '#'
    def find(self, ch):
        for p, v in self.cells.items():
            if v == ch: return p
        raise LookupError(ch)
    def neighbours(self, p):
        for name, d in DIRS.items():
            q = p + d
            if q in self: yield name, q
    def bfs(self, start):
        dist, prev, todo = {start: 0}, {}, deque([start])
        while todo:
            p = todo.popleft()
            for n, q in self.neighbours(p):
                if q not in dist:
                    dist[q] = dist[p] + 1; prev[q] = (p, n); todo.append(q)
        return dist, prev
    def render(self, marks={}):
        return '\n'.join(''.join(marks.get(Pos(r, c), self.cells[Pos(r, c)]) for c in range(self.w)) for r in range(self.h))

def program(text, decay):
    g = Grid(text)
    try:
        s, e = g.find('S'), g.find('E')
    except LookupError as err:
        print('missing', err)
        return g.render(), str(err), decay * 2
    dist, prev = g.bfs(s)
    field = torch.full((g.h, g.w), -1.)
    for p, d in dist.items(): field[p] = float(d)
    potential = torch.where(field >= 0, decay ** field, torch.zeros(()))
    path, p = [], e
    while p != s:
        try: p, n = prev[p]
        except KeyError: path = None; break
        path.append(n)
    marks = {}
    if path is not None:
        path.reverse(); cur = s
        for n in path[:-1]: cur += DIRS[n]; marks[cur] = '*'
    return potential, path, g.render(marks), potential.sum(1), s._replace(r=9), s + e, Pos._fields, max(dist.values())

CALLS = ["('S..#\\n.#..\\n...E', torch.tensor(.5))", "('S#E', torch.tensor(2.))", "('abc', torch.ones(1))", "('SE', torch.tensor(.1))", "('S  \\n##\\nE', torch.tensor(0.9))"]
