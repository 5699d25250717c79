import torch, heapq
from dataclasses import dataclass, field
@dataclass(order=True)
class Hyp:
    score: float
    toks: list = field(compare=False)
    done: bool = field(default=False, compare=False)
    def extend(self, tok, lp, eos): return Hyp(self.score + lp, self.toks + [tok], tok == eos)
    def norm(self, a): return self.score / max(1, len(self.toks)) ** a
def beam(table, start, width, eos, steps, alpha=.7):
    beams, trace = [Hyp(0., [start])], []
    for s in range(steps):
        cand = [b for b in beams if b.done]
        for b in beams:
            if b.done: continue
            lp = (table[b.toks[-1]] - .1 * len(b.toks)).log_softmax(-1)
            v, i = lp.topk(min(width, lp.numel()))
            cand.extend(b.extend(t, p, eos) for p, t in zip(v.tolist(), i.tolist()))
        beams = heapq.nlargest(width, cand)
        trace.append([len(b.toks) for b in beams])
        if all(b.done for b in beams): print('all done', s); break
    return sorted(beams, key=lambda h: h.norm(alpha), reverse=True), trace
def program(table, start, width, eos, steps):
    try: best, trace = beam(table, start, width, eos, steps)
    except IndexError as e: return 'index', str(e)[:30]
    scores = torch.tensor([b.score for b in best])
    w = scores.softmax(0) if len(best) else scores
    return [b.toks for b in best], [f'{b.score:.4f}' for b in best], w, trace, best == sorted(best), max(best, default=None)
CALLS = ["(torch.arange(16.).reshape(4,4).sin(), 0, 2, 3, 4)", "(torch.eye(3), 0, 3, 0, 2)", "(torch.zeros(2,2), 1, 0, 1, 2)", "(torch.eye(3), 7, 1, 0, 3)", "(torch.tensor([[0.,1.,.5],[2.,0.,1.],[.1,.2,.3]]), 0, 1, 99, 5)"]
