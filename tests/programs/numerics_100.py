import torch
from collections import OrderedDict
from functools import lru_cache, partial

class Tile:
    @staticmethod
    @lru_cache(maxsize=2)
    def render(size, level):
        g = torch.arange(size).float()
        return (g[:, None] * level + g[None]).fmod(3)

class View:
    def __init__(self, size): self.size, self.tiles = size, OrderedDict()
    def __getitem__(self, pos):
        if pos not in self.tiles: self.tiles[pos] = Tile.render(self.size, sum(pos))
        self.tiles.move_to_end(pos)
        return self.tiles[pos]
    def window(self, rows, cols): return torch.cat([torch.cat([self[r, c] for c in cols], 1) for r in rows], 0)

def program(size, rows, cols):
    Tile.render.cache_clear()
    v = View(size)
    img = v.window(range(rows), range(cols))
    if img.mean() > 0.9: print('bright', img.shape)
    v[0, 1].mul_(-1)
    again = v.window(range(rows), range(cols))
    changed = (img != again).sum().item()
    return img, again, changed, list(v.tiles), Tile.render.cache_info(), len({id(t) for t in v.tiles.values()}), v[0, 1] is v.tiles.get((1, 0))

CALLS = ["(2, 2, 2)", "(2, 2, 2)", "(3, 2, 2)", "(4, 1, 2)", "(1, 1, 1)", "(2, 0, 1)"]
