import torch
from dataclasses import dataclass, asdict, astuple, field
from collections import ChainMap
import statistics

@dataclass(order=True)
class Score:
    value: float
    step: int = field(compare=False)
    weights: torch.Tensor = field(compare=False, repr=False)
    tags: set = field(default_factory=set, compare=False)
    def __post_init__(self):
        self.value = round(self.value, 3)
        if self.weights.requires_grad:
            self.tags.add('grad')

class Leaderboard:
    def __init__(self, k):
        self.k, self.items = k, []
    def add(self, s):
        self.items.append(s)
        self.items.sort(reverse=True)
        dropped = self.items[self.k:]
        del self.items[self.k:]
        return dropped

def program(xs, k):
    board = Leaderboard(k)
    dropped = []
    defaults = {'scale': 1.0, 'shift': 0.0}
    cfg = ChainMap({}, defaults)
    for step, x in enumerate(xs):
        value = (x * cfg['scale'] + cfg['shift']).sum().item()
        if value > 5:
            cfg['scale'] = cfg['scale'] / 2
        dropped += board.add(Score(value, step, x))
    print(board.items)
    values = [s.value for s in board.items]
    med = statistics.median(values) if values else None
    merged = sum((s.weights for s in board.items), torch.zeros(()))
    return board.items, [asdict(s) for s in dropped], med, merged, dict(cfg), defaults, [astuple(s)[:2] for s in board.items]

CALLS = ["([torch.ones(2), torch.ones(3)*2, torch.zeros(1)], 2)", "([torch.ones(2), torch.ones(2)*4, torch.ones(2)*3], 1)", "([torch.ones(2, requires_grad=True)], 1)", "([], 1)", "([torch.tensor(float('nan')), torch.tensor(1.)], 2)"]
