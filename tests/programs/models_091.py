import torch
class TdLambda:
    def __init__(self, n, lam): self.v, self.lam = torch.zeros(n), lam; self.traces = []
    def episode(self, path, rewards, gamma=.9, alpha=.5):
        e = torch.zeros_like(self.v)
        for (s, s2), r in zip(zip(path, path[1:] + [None]), rewards, strict=True):
            nxt = self.v[s2] if s2 is not None else 0.
            delta = r + gamma * nxt - self.v[s]
            e *= gamma * self.lam; e[s] += 1
            self.v += alpha * delta * e
        self.traces.append(e)
        return delta
def value_iter(P, R, gamma, tol=1e-3):
    V = R.new_zeros(P.shape[0]); k = 0
    while True:
        Q = R + gamma * torch.einsum('sat,t->sa', P, V); new, pi = Q.max(1); k += 1
        if (new - V).abs().max() < tol or k >= 50: return new, pi, k
        V = new
def policy_eval(P, R, pi, gamma):
    i = torch.arange(len(pi)); A = torch.eye(len(pi)) - gamma * P[i, pi]
    return torch.linalg.solve(A, R[i, pi])
def program(P, R, gamma, eps):
    td = TdLambda(len(R), .5); deltas = []
    for path, rs in eps:
        try: deltas.append(td.episode(path, rs))
        except (ValueError, UnboundLocalError, IndexError) as e: deltas.append(type(e).__name__ + ':' + str(e)[:20]); print('episode failed')
    try:
        V, pi, k = value_iter(P, R, gamma); ex = policy_eval(P, R, pi, gamma)
    except (RuntimeError, IndexError) as e: return deltas, td.v, isinstance(e, torch.linalg.LinAlgError)
    return deltas, td.v, td.traces, V, pi, k, (V - ex).abs().max() < .05, ex.round(decimals=2)
CALLS = ["(torch.tensor([[[1.,0],[0,1.]],[[.5,.5],[1.,0]]]), torch.tensor([[0.,1.],[2.,0.]]), .5, [([0,1,0],[1.,0.,2.]), ([1],[1.,2.])])", "(torch.eye(2)[None].expand(2,2,2).transpose(0,1), torch.ones(2,2), 1., [([],[]), ([5],[1.])])", "(torch.ones(1,1,1), torch.zeros(1,1), .9, [])", "(torch.zeros(2,1,2), torch.ones(2,1), .0, [([0,0],[1.,1.])])"]
