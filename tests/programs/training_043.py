import torch
from collections import deque
import heapq

class Beam:
    __slots__ = 'tokens', 'score', 'state', '__weakref__'
    def __init__(self, tokens, score, state):
        self.tokens, self.score, self.state = tokens, score, state
    def __lt__(self, o):
        return (self.score, self.tokens) < (o.score, o.tokens)
    def extend(self, tok, lp, state):
        return Beam((*self.tokens, tok), self.score + lp, state)

def search(step, h0, width, eos, max_len):
    live, done = [Beam((), 0.0, h0)], []
    visited = deque(maxlen=3)
    while live and max_len > 0:
        max_len -= 1
        cand = []
        for b in live:
            lp, h = step(b.tokens[-1] if b.tokens else 0, b.state)
            vals, idx = lp.topk(min(width, lp.numel()))
            for v, i in zip(vals.tolist(), idx.tolist()):
                item = b.extend(i, round(v, 5), h)
                if len(cand) < width:
                    heapq.heappush(cand, item)
                elif cand[0] < item:
                    heapq.heapreplace(cand, item)
        live = []
        while cand:
            b = heapq.heappop(cand)
            visited.append(b.tokens)
            (done if b.tokens[-1] == eos else live).append(b)
        live.reverse()
        if len(done) >= width:
            print('enough', len(done)); break
    else:
        print('ran out' if live else 'no live')
    return sorted(done + live, reverse=True), visited

def program(E, W, width, eos, max_len):
    def step(tok, h):
        nonlocal calls
        calls += 1
        h = torch.tanh(h @ W + E[tok])
        return torch.log_softmax(E @ h, 0), h
    calls = 0
    out, visited = search(step, torch.zeros(E.shape[1]), width, eos, max_len)
    return [(b.tokens, round(b.score, 3), b.state) for b in out], calls, visited, visited.maxlen, out[0] < out[-1] if out else None

CALLS = ["(torch.linspace(-1,1,8).reshape(4,2), torch.eye(2), 2, 3, 4)", "(torch.linspace(-1,1,6).reshape(3,2)*3, -torch.eye(2), 3, 0, 3)", "(torch.ones(2,1), torch.ones(1,1), 1, 9, 3)", "(torch.ones(2,1), torch.ones(1,1), 2, 0, 0)", "(torch.ones(2,1), torch.ones(1,1), 0, 0, 2)"]
