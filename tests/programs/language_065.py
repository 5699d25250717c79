import torch
import itertools
from collections import Counter

def logits_processors(cfg):
    def temperature(l, _): return l / t
    def top_k(l, _):
        v = l.topk(min(k, l.numel())).values[-1]
        return l.masked_fill(l < v, -torch.inf)
    def top_p(l, _):
        s, i = l.softmax(-1).sort(descending=True)
        drop = s.cumsum(-1) - s > p
        return l.masked_fill(torch.zeros_like(drop).scatter(0, i, drop), -torch.inf)
    def no_repeat(l, hist):
        banned = {b for a, b in itertools.pairwise(hist) if hist and a == hist[-1]}
        return l.index_fill(0, torch.tensor(sorted(banned), dtype=torch.long), -torch.inf)
    def penalty(l, hist):
        l = l.clone()
        for tok, n in Counter(hist).items():
            l[tok] = l[tok] / pen ** n if l[tok] > 0 else l[tok] * pen ** n
        return l
    k, p, t, pen = (cfg.get(n, d) for n, d in zip(('k', 'p', 't', 'pen'), (0, 1, 1, 1)))
    return [f for f in (penalty, no_repeat, temperature, top_k, top_p) if f.__name__ in cfg['use']]

class BigramLM:
    def __init__(self, w): self.w, self.calls = w, 0
    def __call__(self, ids):
        self.calls += 1
        return self.w[ids[-1]]

def generate(lm, ids, n, cfg, stop=frozenset()):
    procs = logits_processors(cfg)
    g = torch.Generator().manual_seed(cfg.get('seed', 0))
    for _ in range(n):
        l = lm(ids)
        for f in procs: l = f(l, ids)
        if cfg.get('greedy'):
            nxt = l.argmax()
        else:
            nxt = torch.multinomial(l.softmax(-1), 1, generator=g)[0]
        ids = ids + [int(nxt)]
        yield ids[-1], l
        if ids[-1] in stop:
            return 'stop'
    return 'length'

def program(w, start, n, cfg):
    lm = BigramLM(w)
    g = generate(lm, [start], n, cfg, {0})
    toks, ls = [], []
    while True:
        try:
            tok, l = next(g)
        except StopIteration as s:
            why = s.value; break
        except (RuntimeError, IndexError) as e:
            why = type(e).__name__
            break
        toks.append(tok); ls.append(l)
    print('generated', len(toks), why)
    return toks, why, lm.calls, ls[-1] if ls else None, torch.stack(ls).isinf().sum() if ls else 0, [f.__name__ for f in logits_processors(cfg)]

CALLS = ["(torch.arange(9.).reshape(3, 3).sin(), 1, 4, {'use': ['temperature', 'top_k'], 'k': 2, 't': .7})", "(torch.eye(4).roll(1, 1), 1, 6, {'use': ['penalty', 'no_repeat'], 'pen': 1.3, 'greedy': True})",
 "(torch.ones(3, 3), 2, 5, {'use': ['top_p'], 'p': .4, 'seed': 3})", "(torch.ones(2, 2), 1, 0, {'use': []})", "(torch.full((2, 2), float('nan')), 1, 2, {'use': ['top_p']})", "(torch.ones(2, 2), 5, 2, {'use': []})"]
