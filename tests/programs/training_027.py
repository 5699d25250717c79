import torch
import torch.distributions as D

class Chain:
    accepted = 0
    def __init__(self, target, seed):
        self.target = target
        self.gen = torch.Generator().manual_seed(seed)
    def __iter__(self):
        self.x = torch.zeros(2)
        self.lp = self.target.log_prob(self.x).sum()
        return self
    def __next__(self):
        prop = self.x + torch.randn(2, generator=self.gen)
        lp = self.target.log_prob(prop).sum()
        if not torch.isfinite(lp):
            raise StopIteration
        u = torch.rand((), generator=self.gen)
        if u.log() < lp - self.lp:
            self.x, self.lp = prop, lp
            Chain.accepted += 1
        return self.x

def program(kind, n, seed):
    Chain.accepted = 0
    makers = dict(normal=lambda: D.Normal(torch.ones(2), 2.), laplace=lambda: D.Laplace(torch.zeros(2), .1), 
                  mix=lambda: D.MixtureSameFamily(D.Categorical(torch.ones(2, 2)), D.Normal(torch.tensor([[-1., 1.]] * 2), 1.)))
    try:
        target = makers[kind]()
    except KeyError:
        print('unknown', kind)
        target = D.Uniform(-torch.ones(2), torch.ones(2), validate_args=False)
    xs = []
    for i, x in zip(range(n), Chain(target, seed)):
        xs.append(x)
    torch.manual_seed(seed)
    s = D.Categorical(logits=torch.tensor([0., 1., 2.])).sample((5,))
    perm = torch.randperm(4)
    b = torch.bernoulli(torch.full((4,), .5))
    bad = None
    try:
        D.Normal(0., -1.)
    except ValueError as e:
        bad = str(e).split('\n')[0][:60]
    kl = D.kl_divergence(D.Normal(0., 1.), D.Normal(torch.tensor(1.), 2.))
    unique = len({id(x) for x in xs})
    return torch.stack(xs).mean(0) if xs else None, Chain.accepted, unique <= len(xs), s, perm, b, bad, kl, type(target).__name__

CALLS = ["('normal', 6, 0)", "('laplace', 5, 1)", "('mix', 4, 2)", "('what', 5, 3)", "('normal', 0, 0)"]
