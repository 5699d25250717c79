import torch
from enum import IntEnum, Flag, auto

class Cell(IntEnum):
    EMPTY = 0
    X = 1
    O = -1
    def other(self):
        return Cell(-self)

class Result(Flag):
    NONE = 0
    X_WINS = auto()
    O_WINS = auto()
    FULL = auto()
    OVER = X_WINS | O_WINS | FULL

LINES = [[0,1,2],[3,4,5],[6,7,8],[0,3,6],[1,4,7],[2,5,8],[0,4,8],[2,4,6]]

class Board:
    def __init__(self, cells=None):
        self.cells = torch.zeros(9, dtype=torch.int8) if cells is None else cells
    def result(self):
        r = Result.NONE
        sums = self.cells[torch.tensor(LINES)].sum(1)
        if (sums == 3).any():
            r |= Result.X_WINS
        if (sums == -3).any():
            r |= Result.O_WINS
        if (self.cells != Cell.EMPTY).all():
            r |= Result.FULL
        return r
    def play(self, i, who):
        if self.cells[i] != 0:
            raise ValueError(f'cell {i} taken by {Cell(self.cells[i].item()).name}')
        new = self.cells.clone()
        new[i] = who
        return Board(new)
    def __str__(self):
        return '/'.join(''.join('.XO'[c] for c in row) for row in self.cells.view(3, 3).tolist())
    def __hash__(self):
        return hash(tuple(self.cells.tolist()))
    def __eq__(self, o):
        return isinstance(o, Board) and torch.equal(self.cells, o.cells)

def program(moves, first=Cell.X):
    b, who, seen = Board(), first, {}
    err = None
    try:
        for n, m in enumerate(moves):
            b = b.play(m, who)
            seen[b] = n
            if b.result() & Result.OVER:
                print('over:', b.result())
                break
            who = who.other()
    except (ValueError, IndexError) as e:
        err = type(e), str(e)
    return str(b), b.result(), who, seen.get(b), len(seen), b.cells, err, seen.get(Board())

CALLS = ["([0,3,1,4,2],)", "([0,3,1,4,2],)", "([4,4],)", "([8,0,7,1,3,2], Cell.O)", "([],)", "([9],)"]
