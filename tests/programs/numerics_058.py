import torch

class Tetris:
    SHAPES = {'O': [[1,1],[1,1]], 'I': [[1,1,1,1]], 'T': [[1,1,1],[0,1,0]]}
    def __init__(self, h, w):
        self.board = torch.zeros(h, w, dtype=torch.uint8)
        self.score = 0
    def fits(self, piece, y, x):
        ph, pw = piece.shape
        if y + ph > self.board.shape[0] or x < 0 or x + pw > self.board.shape[1]: return False
        return not (self.board[y:y+ph, x:x+pw] & piece).any()
    def drop(self, name, x, turns=0):
        piece = torch.tensor(self.SHAPES[name], dtype=torch.uint8).rot90(turns)
        y = 0
        if not self.fits(piece, y, x): raise RuntimeError('game over')
        while self.fits(piece, y + 1, x): y += 1
        self.board[y:y+piece.shape[0], x:x+piece.shape[1]] |= piece
        full = self.board.all(1)
        if n := int(full.sum()):
            self.board = torch.cat([torch.zeros(n, self.board.shape[1], dtype=torch.uint8), self.board[~full]])
            self.score += [0, 1, 3, 5, 8][n]
        return y, n

def program(h, w, moves):
    game = Tetris(h, w)
    results = []
    try:
        for move in moves:
            results.append(game.drop(*move))
    except (RuntimeError, KeyError) as e:
        results.append(e.args)
    else:
        results.append('ok')
    finally:
        heights = [h - int(c.nonzero()[0]) if c.any() else 0 for c in game.board.T]
        print(heights)
    return game.board, game.score, results, heights

CALLS = ["(4, 4, [('O',0),('O',2),('I',0)])", "(4, 4, [('O',0),('O',2),('I',0)])", "(3, 4, [('T',0,1),('O',0),('O',2)])", "(2, 2, [('Z',0)])", "(0, 2, [])"]
