import torch
def top_p_filter(logits, p):
    s, i = logits.sort(descending=True, stable=True)
    c = s.softmax(-1).cumsum(-1)
    drop = c - s.softmax(-1) > p
    s = s.masked_fill(drop, float('-inf'))
    return torch.full_like(logits, float('-inf')).scatter(-1, i, s)
class Processor:
    chain = ()
    def __call__(self, lg, ctx): return lg
    def __or__(self, o):
        new = Processor(); new.chain = (self.chain or (self,)) + (o.chain or (o,))
        new.__class__ = Chain
        return new
class Chain(Processor):
    def __call__(self, lg, ctx):
        for p in self.chain: lg = p(lg, ctx)
        return lg
class Temp(Processor):
    def __init__(self, t): self.t = t
    def __call__(self, lg, ctx): return lg / self.t
class Repeat(Processor):
    def __init__(self, pen): self.pen = pen
    def __call__(self, lg, ctx):
        lg = lg.clone()
        for t in {*ctx}: lg[t] = lg[t] / self.pen if lg[t] > 0 else lg[t] * self.pen
        return lg
class TopP(Processor):
    def __init__(self, p): self.p = p
    def __call__(self, lg, ctx): return top_p_filter(lg, self.p)
def program(emb, prompt, n, t, p, seed):
    g = torch.Generator(); g.manual_seed(seed)
    chain = Repeat(1.5) | Temp(t) | TopP(p)
    ctx = list(prompt)
    kept = []
    for _ in range(n):
        lg = emb @ emb[ctx[-1]]
        try: f = chain(lg, ctx)
        except ZeroDivisionError: print('zero'); break
        pr = f.softmax(-1)
        kept.append((pr > 0).sum().item())
        try: ctx.append(torch.multinomial(pr, 1, generator=g).item())
        except RuntimeError as e: print('cannot sample'); break
    return ctx, kept, pr if n else None, type(chain).__name__, [type(c).__name__ for c in chain.chain], chain.__dict__.keys()
CALLS = ["(torch.arange(12.).reshape(4,3).sin(), [0], 4, 1., .8, 0)", "(torch.eye(3), (1,2), 3, .5, 1., 1)", "(torch.eye(3), (1,2), 0, .5, 1., 1)", "(torch.ones(2,2), [1], 2, 0, .5, 3)", "(torch.ones(2,2), [1], 2, torch.tensor(2.), -.5, 3)"]
