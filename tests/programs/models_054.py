import torch, torch.nn as nn
class MessagePassing(nn.Module):
    aggr = 'sum'
    def message(self, src, dst, attr): return src
    def update(self, x, agg): return agg
    def forward(self, x, ei, attr=None):
        s, d = ei
        m = self.message(x[s], x[d], attr)
        out = x.new_zeros(len(x), m.shape[1])
        if self.aggr in ('sum', 'mean'): out = out.index_add(0, d, m)
        if self.aggr == 'mean': out = out / torch.bincount(d, minlength=len(x)).clamp(min=1)[:, None]
        elif self.aggr == 'max': out = out.scatter_reduce(0, d[:, None].expand_as(m), m, 'amax', include_self=False)
        return self.update(x, out)
class SAGE(MessagePassing):
    aggr = 'mean'
    def __init__(self, i, o): super().__init__(); self.a, self.b = nn.Linear(i, o), nn.Linear(i, o, bias=False)
    def update(self, x, agg): return self.a(x) + self.b(agg)
class GAT(MessagePassing):
    def __init__(self, i, o): super().__init__(); self.l = nn.Linear(i, o); self.att = nn.Parameter(torch.ones(2 * o)); self.seen = []
    def message(self, src, dst, attr):
        hs, hd = self.l(src), self.l(dst)
        a = torch.cat([hs, hd], -1) @ self.att
        if attr is not None: a = a * attr
        self.seen.append(len(a))
        return hs * a.sigmoid()[:, None]
class Edge(MessagePassing):
    aggr = 'max'
    def message(self, src, dst, attr): return dst - src
def program(x, ei, attr, names):
    torch.manual_seed(0); kinds = {c.__name__: c for c in MessagePassing.__subclasses__()}
    log = []
    for n in names:
        try: layer = kinds[n]() if n == 'Edge' else kinds[n](x.shape[1], 3)
        except KeyError: print('unknown', n); continue
        try: x = layer(x, ei, attr).tanh()
        except (IndexError, RuntimeError) as e: log.append(type(e).__name__); break
        log.append((n, tuple(x.shape), layer.aggr, getattr(layer, 'seen', None)))
    return x, log, x.mean(0), sorted(kinds)
CALLS = ["(torch.eye(3), torch.tensor([[0,1,2],[1,2,0]]), None, ['SAGE','GAT','Edge'])", "(torch.ones(2,2), torch.zeros(2,0,dtype=torch.long), None, ['Edge','SAGE'])", "(torch.ones(2,2), torch.tensor([[0],[5]]), None, ['GAT'])", "(torch.ones(2,2), torch.tensor([[0],[1]]), torch.tensor([2.]), ['GAT','Foo','GAT'])"]
