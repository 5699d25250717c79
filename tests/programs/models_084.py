import torch
class LogNum:
    def __init__(self, l): self.l = l if torch.is_tensor(l) else torch.tensor(float(l))
    def __add__(self, o): return LogNum(torch.logaddexp(self.l, o.l)) if o != 0 else self
    def __radd__(self, o): return self if o == 0 else NotImplemented
    def __mul__(self, o): return LogNum(self.l + o.l)
    def __eq__(self, o): return isinstance(o, LogNum) and bool(self.l == o.l)
    def __ne__(self, o): return not self == o
    def __ge__(self, o): return bool(self.l >= o.l)
    def __gt__(self, o): return bool(self.l > o.l)
    def __float__(self): return self.l.exp().item()
class MaxPlus(LogNum):
    def __add__(self, o): return self if self >= o else o
    def __mul__(self, o): return MaxPlus(self.l + o.l)
def forward_algo(pi, A, B, obs, kind):
    w = lambda t: [[*map(kind, r)] for r in t.log()]
    A_, B_ = w(A), w(B); f = [kind(p) * B_[s][obs[0]] for s, p in enumerate(pi.log())]; back = []
    for o in obs[1:]:
        new, bp = [], []
        for s in range(len(f)):
            terms = [f[q] * A_[q][s] for q in range(len(f))]
            bp.append(terms.index(max(terms))); new.append(sum(terms[1:], terms[0]) * B_[s][o])
        f = new; back.append(bp)
    return sum(f[1:], f[0]), f, back
def program(A, B, pi, obs):
    out = {}
    for kind in (LogNum, MaxPlus):
        try: tot, f, back = forward_algo(pi, A, B, obs, kind)
        except IndexError as e: out[kind.__name__] = str(e)[:20]; print('bad obs'); continue
        s = max(range(len(f)), key=lambda i: f[i].l.item()); path = [s]
        for bp in reversed(back): s = bp[s]; path.insert(0, s)
        out[kind.__name__] = round(float(tot), 6), path, torch.stack([g.l for g in f]), type(tot).__name__
    try: 1 + LogNum(0.)
    except TypeError as e: err = str(e)
    return out, err, float(sum([LogNum(0.), LogNum(0.)]))
CALLS = ["(torch.tensor([[.7,.3],[.4,.6]]), torch.tensor([[.9,.1],[.2,.8]]), torch.tensor([.5,.5]), [0,1,1,0])", "(torch.eye(2), torch.ones(2,2), torch.tensor([1.,0.]), [0])", "(torch.eye(2), torch.ones(2,2), torch.tensor([1.,0.]), [])", "(torch.eye(2), torch.ones(2,2), torch.tensor([0.,1.]), (1,3))"]
