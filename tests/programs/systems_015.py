import torch
from functools import lru_cache

LINES = [(0,1,2),(3,4,5),(6,7,8),(0,3,6),(1,4,7),(2,5,8),(0,4,8),(2,4,6)]

def winner(b):
    for i, j, k in LINES:
        if b[i] != '.' and b[i] == b[j] == b[k]: return b[i]
    return '-' if '.' not in b else None

class Player:
    visited = 0
    def __init__(self, mark): self.mark, self.other = mark, 'OX'[mark == 'O']
    def score(self, b, turn, alpha=-2, beta=2):
        Player.visited += 1
        if (w := winner(b)) is not None:
            return {self.mark: 1, self.other: -1}.get(w, 0)
        best = -2 if turn == self.mark else 2
        for i, c in enumerate(b):
            if c != '.': continue
            v = self.score(b[:i] + turn + b[i+1:], 'XO'[turn == 'X'], alpha, beta)
            if turn == self.mark: best = max(best, v); alpha = max(alpha, v)
            else: best = min(best, v); beta = min(beta, v)
            if beta <= alpha: break
        return best
    def values(self, b):
        return {i: self.score(b[:i] + self.mark + b[i+1:], self.other) for i, c in enumerate(b) if c == '.'}

def program(board, temp):
    if len(board) != 9: raise ValueError(f'board of {len(board)}')
    turn = 'X' if board.count('X') <= board.count('O') else 'O'
    moves = []
    probs = torch.zeros(9)
    while winner(board) is None:
        vals = Player(turn).values(board)
        t = torch.full((9,), float('-inf'))
        t[list(vals)] = torch.tensor([float(v) for v in vals.values()])
        probs = torch.softmax(t / temp, 0)
        i = int(probs.argmax())
        assert board[i] == '.'
        board = board[:i] + turn + board[i+1:]
        moves.append((turn, i, round(probs[i].item(), 3)))
        turn = 'O' if turn == 'X' else 'X'
        if len(moves) == 2: print('\n'.join(board[k:k+3] for k in (0, 3, 6)))
    return board, winner(board), moves, probs, Player.visited

CALLS = ["('XO.XO....', torch.tensor(1.))", "('XX.OO.XO.', torch.tensor(.5))", "('XOXXOOOXX', torch.tensor(1.))", "('X', torch.tensor(1.))", "('XOX.O....', torch.tensor(2.))"]
