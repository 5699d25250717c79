import torch
import torch.nn.functional as F

class Episode(list):
    """list of (state, action, reward) with extras"""
    gamma = 0.9
    def __init__(self, *a, name=''):
        super().__init__(*a)
        self.name = name
    def returns(self):
        out, g = [], 0.0
        for *_, r in reversed(self):
            g = r + self.gamma * g
            out.append(g)
        return torch.tensor(out[::-1])
    def __add__(self, o):
        return type(self)(super().__add__(o), name=f'{self.name}+{o.name}')
    def __missing__(self, k): return k

class Env:
    def __init__(self, n): self.n, self.pos = n, n // 2
    def step(self, a):
        self.pos += 1 if a else -1
        done = not 0 < self.pos < self.n
        return F.one_hot(torch.tensor(self.pos).clamp(0, self.n), self.n + 1).float(), float(self.pos >= self.n), done

def rollout(env, policy, gen, limit):
    s = F.one_hot(torch.tensor(env.pos), env.n + 1).float()
    ep = Episode(name=f'n{env.n}')
    done = False
    while not done and len(ep) < limit:
        p = torch.softmax(s @ policy, -1)
        a = torch.multinomial(p.detach(), 1, generator=gen).item()
        nxt, r, done = env.step(a)
        ep.append((s, a, r)); s = nxt
    return ep, done

def program(n, seed, limit, lr):
    gen = torch.Generator(); gen.manual_seed(seed)
    policy = torch.zeros(n + 1, 2, requires_grad=True)
    allep, base = Episode(name='all'), None
    for it in range(3):
        ep, done = rollout(Env(n), policy, gen, limit)
        allep += ep
        if not ep:
            continue
        R = ep.returns()
        base = R.mean() if base is None else 0.5 * base + 0.5 * R.mean()
        logp = torch.stack([F.log_softmax(s @ policy, -1)[a] for s, a, _ in ep])
        loss = -(logp * (R - base)).sum()
        g, = torch.autograd.grad(loss, [policy])
        if g.abs().sum() > 0:
            policy = (policy - lr * g).detach().requires_grad_()
        print(it, len(ep), done)
    both = allep + Episode(allep[:1], name='first')
    return policy.detach(), base, len(both), both.name, type(allep).__name__, type(allep[:1]).__name__, gen.get_state().sum(), both == list(both), policy.is_leaf

CALLS = ["(4, 0, 6, .5)", "(2, 3, 4, .1)", "(6, 1, 3, 1)", "(4, 0, 0, .5)", "(0, 0, 2, .5)"]
