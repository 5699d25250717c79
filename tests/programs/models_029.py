import torch, torch.nn as nn
class MultiTask(nn.Module):
    KINDS = {'cls': nn.CrossEntropyLoss, 'reg': nn.MSELoss}
    def __init__(self, d, tasks):
        super().__init__()
        self.trunk = nn.Linear(d, 4)
        self.heads = nn.ModuleDict(); self.loss = {}
        self.logvar = nn.ParameterDict()
        for name, (kind, n) in tasks.items():
            self.heads[name] = nn.Linear(4, n); self.loss[name] = self.KINDS[kind]()
            self.logvar[name] = nn.Parameter(torch.zeros(()))
    def forward(self, x, only=None):
        h = self.trunk(x).relu()
        return {k: head(h) for k, head in self.heads.items() if only is None or k in only}
    def total(self, out, targets):
        parts = {}
        for k, y in out.items():
            if (t := targets.get(k)) is None: continue
            s = self.logvar[k]
            parts[k] = (-s).exp() * self.loss[k](y, t) + s
        return sum(parts.values()), parts
def program(x, tasks, targets, only):
    torch.manual_seed(0)
    try: m = MultiTask(x.size(1), tasks)
    except KeyError as e: return 'bad kind', e.args, isinstance(e, LookupError)
    out = m(x, only)
    tot, parts = m.total(out, targets)
    gs = {}
    if isinstance(tot, int): print('no loss', tot)
    else:
        for k, p in parts.items():
            g, = torch.autograd.grad(p, m.trunk.weight, retain_graph=True)
            gs[k] = g.flatten()
        ks = list(gs)
        cos = {(a, b): torch.cosine_similarity(gs[a], gs[b], dim=0).sign().item() for i, a in enumerate(ks) for b in ks[i + 1:]}
        gs['cos'] = cos
    return out, tot, parts, gs, 'a' in m.heads, [*m.heads.keys()], m.loss.keys() <= m.heads.keys()
CALLS = ["(torch.arange(6.).reshape(3,2), {'a':('cls',3),'b':('reg',1)}, {'a':torch.tensor([0,1,2]),'b':torch.ones(3,1)}, None)", "(torch.ones(2,2), {'a':('reg',1)}, {}, None)", "(torch.ones(2,2), {'a':('zzz',1)}, {}, None)", "(torch.ones(2,3), {'a':('reg',2),'c':('reg',1)}, {'c':torch.zeros(2,1)}, {'c'})"]
