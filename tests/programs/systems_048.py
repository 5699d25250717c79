import torch

class HMM:
    def __init__(self, states, obs, start, trans, emit):
        self.states, self.obs = list(states), {o: i for i, o in enumerate(obs)}
        self.pi, self.A, self.B = (torch.tensor(v, dtype=torch.float64) for v in (start, trans, emit))
        for name, m in vars(self).items():
            if isinstance(m, torch.Tensor) and not torch.allclose(m.sum(-1), torch.ones((), dtype=m.dtype)):
                raise ValueError(f'{name}: rows sum to {m.sum(-1).tolist()}')
    @classmethod
    def from_dict(cls, d):
        S, O = list(d['start']), list(next(iter(d['emit'].values()), ()))
        return cls(S, O, [d['start'][s] for s in S], [[d['trans'][s][t] for t in S] for s in S], [[d['emit'][s][o] for o in O] for s in S])
    def encode(self, seq): return [self.obs[o] for o in seq]
    def viterbi(self, seq):
        path = []
        ix = self.encode(seq)
        if not ix: return [], None
        v = (self.pi * self.B[:, ix[0]]).log()
        for o in ix[1:]:
            scores = v[:, None] + self.A.log() + self.B[:, o].log()
            v, arg = scores.max(0); path.append(arg)
        k = v.argmax(); best = [k]
        for arg in reversed(path): k = arg[k]; best.insert(0, k)
        return [self.states[int(i)] for i in best], v.max()
    def forward(self, seq):
        a, ll = None, torch.zeros((), dtype=torch.float64)
        for t, o in enumerate(self.encode(seq)):
            a = (self.pi if a is None else a @ self.A) * self.B[:, o]
            c = a.sum()
            if c == 0: raise ZeroDivisionError(f'impossible at {t}')
            ll += c.log(); a = a / c
            yield a
        return ll

def program(model, seq):
    try: h = HMM.from_dict(model)
    except (KeyError, ValueError) as e: print(type(e).__name__); return str(e), torch.ones(2) * len(seq)
    alphas, ll = [], None
    g = h.forward(seq)
    try:
        while True: alphas.append(next(g))
    except StopIteration as s: ll = s.value
    except (KeyError, ZeroDivisionError) as e: ll = repr(e)
    try: path, score = h.viterbi(seq)
    except KeyError as e: path, score = None, e.args[0]
    counts = torch.zeros_like(h.A)
    for a, b in zip(path or (), (path or [])[1:]): counts[h.states.index(a), h.states.index(b)] += 1
    return path, score, alphas, ll, counts, h.states

_M = {'start': {'H': .6, 'F': .4}, 'trans': {'H': {'H': .7, 'F': .3}, 'F': {'H': .4, 'F': .6}}, 'emit': {'H': {'n': .5, 'c': .5, 'd': 0.}, 'F': {'n': .1, 'c': .3, 'd': .6}}}
CALLS = ["(_M, 'ncd')", "(_M, [])", "({**_M, 'start': {'H': 1., 'F': 1.}}, 'n')", "({**_M, 'start': {'H': 1., 'F': 0.}}, 'dn')", "(_M, 'nx')", "({'start': {}, 'emit': {}}, 'n')"]
