import torch
from types import SimpleNamespace

class Lattice:
    """CRF: forward algorithm, Viterbi with backpointers, tags with BIO constraints"""
    def __init__(self, tags, seed=0):
        self.tags = tags
        self.idx = {t: i for i, t in enumerate(tags)}
        g = torch.Generator().manual_seed(seed)
        self.trans = torch.randn(len(tags), len(tags), generator=g)
        for a in tags:
            for b in tags:
                if b.startswith('I-') and a[1:] != b[1:]:
                    self.trans[self.idx[a], self.idx[b]] = -1e4
    def forward(self, em):
        alpha, *rest = em
        for e in rest: alpha = torch.logsumexp(alpha[:, None] + self.trans, 0) + e
        return alpha.logsumexp(0)
    def viterbi(self, em):
        score, back = em[0], []
        for e in em[1:]:
            best = (score[:, None] + self.trans).max(0)
            score, bp = best
            back.append(best.indices is bp and bp)
            score = score + e
        path = [score.argmax().item()]
        for bp in reversed(back): path.append(bp[path[-1]].item())
        return [self.tags[i] for i in path[::-1]], score.max()

def spans(tags):
    cur = None
    for i, t in enumerate([*tags, 'O']):
        match t.split('-', 1):
            case ['B', kind] | ['S', kind]:
                if cur: yield (*cur, i)
                cur = kind, i
            case ['I', kind] if cur and cur[0] == kind: pass
            case ['I', *_]: raise ValueError(f'orphan {t} at {i}')
            case [_]:
                if cur: yield (*cur, i)
                cur = None

def program(em, tags, words):
    try:
        l = Lattice(tags)
        z = l.forward(em)
        path, best = l.viterbi(em)
    except (IndexError, ValueError, RuntimeError) as e:
        print(type(e).__name__)
        return type(e).__name__, em * 2
    try:
        ents = {k: ' '.join(words[a:b]) for k, a, b in spans(path)}
    except ValueError as e:
        ents = str(e)
    return z, path, best, best <= z, ents, SimpleNamespace(a=1) == SimpleNamespace(a=1), l.trans.argmin().item(), len(l.idx)

CALLS = ["(torch.tensor([[0., 3, 0], [0, 0, 4], [2, 0, 0]]), ['O', 'B-X', 'I-X'], 'we New York'.split())", "(torch.ones(2, 3), ['O', 'B-P', 'I-Q'], ['a', 'b'])", "(torch.ones(0, 2), ['O', 'B-P'], [])", "(torch.ones(1, 2), ['I-A', 'B-P'], ['z'])", "(torch.ones(3, 2), ['O'], 'abc')"]
