import torch, numpy as np
def gae(r, v, done, last, gamma=.9, lam=.8):
    adv, run = torch.zeros_like(r), torch.zeros(r.shape[1:])
    for t in reversed(range(len(r))):
        nv = last if t == len(r) - 1 else v[t + 1]
        nd = 1 - done[t].float()
        delta = r[t] + gamma * nv * nd - v[t]
        adv[t] = run = delta + gamma * lam * nd * run
    return adv, adv + v
class RunningStat:
    def __init__(self): self.n, self.mean, self.m2 = 0, 0., 0.
    def __iadd__(self, x):
        for e in np.asarray(x).ravel():
            self.n += 1; d = e - self.mean
            self.mean = self.mean + d / self.n; self.m2 = self.m2 + d * (e - self.mean)
        return self
    std = property(lambda s: float(np.sqrt(s.m2 / max(1, s.n - 1))))
    def __format__(self, spec): return format(float(self.mean), spec or '.2f') + '±' + format(self.std, spec or '.2f')
def program(r, v, done, last, clip):
    st = keep = RunningStat()
    adv, ret = gae(r, v, done, last)
    st += ret.numpy()
    print(f'{st} {st:.4f}')
    if st.std > 1e-6: adv = (adv - adv.mean()) / adv.std(unbiased=False)
    ratio = (adv * .3).exp()
    pl = -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv)
    frac = ((ratio - 1).abs() > clip).float().mean()
    return adv, ret, pl.sum(), frac, st is keep, st.n, type(st.mean).__name__, round(float(st.mean), 4)
CALLS = ["(torch.arange(6.).reshape(3,2), torch.ones(3,2), torch.tensor([[0,0],[1,0],[0,1]]), torch.zeros(2), .2)", "(torch.ones(2,1), torch.ones(2,1), torch.ones(2,1,dtype=torch.bool), 5., .1)", "(torch.zeros(0,2), torch.zeros(0,2), torch.zeros(0,2), 1, .1)", "(torch.ones(4), torch.zeros(4), torch.tensor([0,0,1,0]), torch.tensor(2.), .1)"]
