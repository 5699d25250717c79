import torch, heapq
class Timeline:
    def __init__(self): self.q, self.now, self.seq = [], 0., 0
    def at(self, dt, fn, *a): heapq.heappush(self.q, (self.now + dt, self.seq, fn, a)); self.seq += 1
    def run(self, until):
        n = 0
        while self.q and self.q[0][0] <= until:
            self.now, _, fn, a = heapq.heappop(self.q); fn(self, *a); n += 1
        return n
class Body:
    all = []
    def __init__(self, p, v, m): self.p, self.v, self.m, self.trail = p, v, m, []; Body.all.append(self)
    def __del__(self): pass
def kick(tl, bodies, dt, left):
    acc = [torch.zeros(2) for _ in bodies]
    for i, a in enumerate(bodies):
        for j, b in enumerate(bodies[i + 1:], i + 1):
            d = b.p - a.p; r = d.norm()
            if r < .1: acc[i] = acc[j] = torch.zeros(2); continue
            f = d / r ** 3; acc[i] += f * b.m; acc[j] -= f * a.m
    for b, g in zip(bodies, acc): b.v = b.v + g * dt; b.p = b.p + b.v * dt; b.trail.append(b.p)
    if left: tl.at(dt, kick, bodies, dt, left - 1)
def merge(tl, bodies, thr):
    for i in reversed(range(1, len(bodies))):
        a, b = bodies[i - 1], bodies[i]
        if (a.p - b.p).norm() < thr: a.v = (a.m * a.v + b.m * b.v) / (a.m + b.m); a.m += b.m; bodies.remove(b); print('merge', i)
def program(ps, dt, n, thr):
    bodies = [Body(p, torch.zeros(2), 1. + i) for i, p in enumerate(ps)]
    tl = Timeline(); tl.at(0, kick, bodies, dt, n)
    tl.at(dt * n / 2, merge, bodies, thr)
    done = tl.run(dt * n)
    mom = sum((b.v * b.m for b in bodies), torch.zeros(2))
    en = sum(.5 * b.m * b.v.square().sum().item() for b in bodies)
    return done, [(b.p, b.v, b.m, len(b.trail)) for b in bodies], mom, round(en, 4), len(tl.q), tl.now, len(Body.all)
CALLS = ["(torch.tensor([[0.,0.],[1.,0.],[0.,2.]]), .1, 4, .5)", "(torch.tensor([[0.,0.],[.05,0.]]), .1, 2, .5)", "(torch.zeros(0,2), .1, 2, 1)", "([torch.ones(2)], 1, 0, 1)"]
