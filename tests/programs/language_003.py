import torch
import heapq
from dataclasses import dataclass, field
from typing import Any

@dataclass(order=True)
class Hyp:
    neg: float
    tokens: tuple = field(compare=False)
    state: Any = field(compare=False, default=None, repr=False)
    done: bool = field(compare=False, default=False)

    def __post_init__(self):
        self.length = len(self.tokens)

    def extend(self, tok, lp, state, eos):
        return Hyp(self.neg - lp, self.tokens + (tok,), state, tok == eos)

    @property
    def score(self):
        return -self.neg / max(1, self.length) ** 0.6

class Cell(torch.nn.Module):
    def __init__(self, v, h):
        super().__init__()
        g = torch.Generator().manual_seed(v * 31 + h)
        self.e = torch.nn.Parameter(torch.randn(v, h, generator=g))
        self.w = torch.nn.Parameter(torch.randn(h, h, generator=g) / h)
        self.calls = 0

    def forward(self, tok, state):
        self.calls += 1
        state = torch.tanh(self.e[tok] + state @ self.w)
        return torch.log_softmax(state @ self.e.t(), -1), state

def program(v, h, width, steps, eos=0):
    cell = Cell(v, h)
    beams = [Hyp(0.0, (1 % v,), torch.zeros(h))]
    finished = []
    for step in range(steps):
        cand = []
        for b in beams:
            if b.done:
                finished.append(b)
                continue
            lp, st = cell(b.tokens[-1], b.state)
            vals, idx = lp.topk(min(width, v))
            for x, i in zip(vals.tolist(), idx.tolist()):
                cand.append(b.extend(i, x, st, eos))
        if not cand:
            print('early stop', step)
            break
        beams = heapq.nsmallest(width, cand)
    else:
        finished += beams
    best = max(finished, key=lambda b: b.score, default=None)
    return [f'{b.neg:.3f}:{b.tokens}' for b in sorted(finished)], best and best.state, cell.calls, repr(best)[:60]

CALLS = ["(5, 4, 2, 3)", "(3, 2, 3, 4)", "(2, 2, 1, 5, 1)", "(4, 3, 2, 0)", "(5, 4, 2, 3)"]
