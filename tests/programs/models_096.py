import torch, torch.nn as nn
class Ensemble(nn.Module):
    def __init__(self, make, n):
        super().__init__(); self.members = nn.ModuleList(); self.weights = []
        for i in range(n): torch.manual_seed(i); self.members.append(make(i)); self.weights.append(1.)
    def __getitem__(self, k): 
        if isinstance(k, slice): e = Ensemble(None, 0); e.members = self.members[k]; e.weights = self.weights[k]; return e
        return self.members[k]
    def __len__(self): return len(self.members)
    def forward(self, x, reduce='mean'):
        ys = torch.stack([w * m(x) for w, m in zip(self.weights, self)])
        match reduce:
            case 'mean': return ys.mean(0)
            case 'vote': return ys.argmax(-1).mode(0).values
            case ('quantile', float(q)): return ys.quantile(q, dim=0)
            case f if callable(f): return f(ys)
            case _: raise NotImplementedError(reduce)
    def extra_repr(self): return f'n={len(self)}, w={self.weights}'
def boost(ens, x, y):
    err = []
    for i, m in enumerate(ens):
        wrong = (m(x).argmax(-1) != y).float().mean().item()
        ens.weights[i] = max(0., 1 - 2 * wrong); err.append(round(wrong, 3))
    return err
def program(x, y, n, how):
    ens = Ensemble(lambda i: nn.Sequential(nn.Linear(x.shape[1], 3), *([nn.Tanh()] if i % 2 else [])), n)
    err = boost(ens, x, y); out = []
    for h in how:
        try: out.append(ens(x, h))
        except NotImplementedError as e: out.append(repr(e))
        except (RuntimeError, IndexError) as e: out.append(type(e).__name__); print('failed', h if isinstance(h, str) else 'other')
    sub = ens[1:]; shared = len(sub) and sub[0] is ens[1]
    if len(sub): sub.weights[0] = 9.
    return out, err, len(sub), shared, ens.weights, repr(ens).splitlines()[:2], [m.training for m in ens.eval()], bool(ens), list(reversed(ens.members)) == [*ens.members][::-1]
CALLS = ["(torch.eye(2), torch.tensor([0,1]), 3, ['mean','vote',('quantile',.5),torch.sum])", "(torch.ones(1,4), torch.tensor([2]), 1, ['nope', ('quantile',2), None])", "(torch.ones(1,2), torch.tensor([0]), 0, ['mean'])", "(torch.zeros(0,2), torch.zeros(0).long(), 2, ['mean','vote', lambda t: t.shape])"]
