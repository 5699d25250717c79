import torch, torch.nn as nn, torch.nn.functional as F
from operator import itemgetter, methodcaller
class Siamese(nn.Module):
    def __init__(self, d):
        super().__init__(); self.net = nn.Sequential(nn.Linear(d, 4), nn.Tanh(), nn.Linear(4, 2)); self.calls = 0
    def embed(self, x): self.calls += 1; return F.normalize(self.net(x), dim=-1)
    def forward(self, *xs): return tuple(map(self.embed, xs))
def triplet(a, p, n, margin): return F.relu((a - p).norm(dim=-1) - (a - n).norm(dim=-1) + margin)
def hard_mine(e, y):
    d = torch.cdist(e, e)
    same = y[:, None] == y[None]
    for i in range(len(y)):
        pos = [j for j in range(len(y)) if j != i and same[i, j]]
        neg = [j for j in range(len(y)) if not same[i, j]]
        if not pos or not neg: continue
        yield i, max(pos, key=lambda j: (d[i, j].item(), j)), min(neg, key=lambda j: (d[i, j].item(), j))
def program(x, y, margin):
    torch.manual_seed(2)
    m = Siamese(x.shape[1])
    e, = m(x)
    trips = list(hard_mine(e, y))
    losses = [triplet(*m(*map(x.__getitem__, t)), margin) for t in trips]
    if losses and (total := torch.stack(losses).mean()) > 0:
        total.backward(); print('mined', len(trips), f'{total.item():.4f}')
    else: total = None
    protos = {c: e[y == c].mean(0).detach() for c in sorted(set(y.tolist()))}
    pred = [min(protos.items(), key=lambda kv: float((kv[1] - v).norm()))[0] for v in e.unbind()]
    g = m.net[0].weight.grad
    return e, trips, total, protos, pred, m.calls, None if g is None else g.norm(), list(map(itemgetter(0), trips)), list(map(methodcaller('item'), losses))
CALLS = ["(torch.arange(12.).reshape(6,2).sin(), torch.tensor([0,0,1,1,2,2]), .5)", "(torch.ones(2,3), torch.tensor([0,1]), .5)", "(torch.eye(3), torch.tensor([1,1,0]), -3.)", "(torch.eye(4), torch.tensor([1,1,0,0]), torch.tensor(1.))"]
