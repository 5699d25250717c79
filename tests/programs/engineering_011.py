import torch
from dataclasses import dataclass, field
import heapq

@dataclass(order=True)
class Hyp:
    score: float
    tokens: tuple = field(compare=False)
    cache: dict = field(compare=False, repr=False, default_factory=dict)

    def extend(self, tok, logp, h):
        return Hyp(self.score + logp, self.tokens + (tok,), {**self.cache, len(self.tokens): h})

def step(W, h, tok):
    return torch.tanh(W @ h + tok)

def program(W, beam, max_len, eos=0):
    n = W.shape[0]
    start = Hyp(0.0, (1,), {0: torch.ones(n)})
    beams, done = [start], []
    for t in range(max_len):
        cands = []
        for hyp in beams:
            h = step(W, hyp.cache[len(hyp.tokens) - 1], hyp.tokens[-1])
            logp = h.log_softmax(0)
            top = logp.topk(min(beam, n))
            for lp, tok in zip(top.values.tolist(), top.indices.tolist()):
                new = hyp.extend(tok, lp, h)
                if tok == eos:
                    done.append(new)
                else:
                    cands.append(new)
        beams = heapq.nlargest(beam, cands)
        if not beams or (done and max(done).score > beams[0].score):
            print('early', t)
            break
    else:
        done.extend(beams)
    best = max(done, default=start)
    stacked = torch.stack([best.cache[k] for k in sorted(best.cache)])
    return best, [d.tokens for d in sorted(done)], stacked, stacked.mean()

CALLS = ["(torch.eye(4) * .5, 2, 4)", "(torch.arange(9.).view(3,3) / 10, 3, 3)", "(-torch.eye(3), 1, 5)", "(torch.ones(2,2), 2, 0)"]
