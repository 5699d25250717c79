import torch, torch.nn.functional as F
from typing import NamedTuple
class Mixed(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor
    lam: float
    box: tuple = ()
    def loss(self, logits, eps=0.):
        n = logits.shape[-1]
        t = self.y * (1 - eps) + eps / n
        return -(t * logits.log_softmax(-1)).sum(-1).mean()
def mixup(x, y, g, lam):
    p = torch.randperm(len(x), generator=g)
    return Mixed(x * lam + x[p] * (1 - lam), y * lam + y[p] * (1 - lam), lam)
def cutmix(x, y, g, lam):
    h, w = x.shape[-2:]
    r = (1 - lam) ** .5
    ch, cw = int(h * r), int(w * r)
    cy, cx = (int(torch.randint(n, (), generator=g)) for n in (h, w))
    y0, y1 = max(cy - ch // 2, 0), min(cy + ch // 2, h)
    x0, x1 = max(cx - cw // 2, 0), min(cx + cw // 2, w)
    p = torch.randperm(len(x), generator=g)
    x = x.clone(); x[:, y0:y1, x0:x1] = x[p, y0:y1, x0:x1]
    lam = 1 - (y1 - y0) * (x1 - x0) / (h * w)
    return Mixed(x, y * lam + y[p] * (1 - lam), lam, (y0, y1, x0, x1))
def program(x, labels, k, lam, how):
    g = torch.Generator().manual_seed(len(how))
    try:
        y = F.one_hot(labels, k).float()
    except RuntimeError as e:
        print('bad label', labels.max().item()); y = torch.ones(len(labels), k) / k
    fn = {'mixup': mixup, 'cutmix': cutmix}.get(how) or globals()[how]
    m = fn(x, y, g, lam)
    logits = m.x.flatten(1).sum(1, keepdim=True) * torch.linspace(-.1, .1, k)
    return m, m.loss(logits), m.loss(logits, eps=.1), m._asdict().keys(), m.lam == lam
CALLS = ["(torch.arange(32.).reshape(2,4,4), torch.tensor([0,2]), 3, .3, 'mixup')", "(torch.arange(32.).reshape(2,4,4), torch.tensor([0,2]), 3, .3, 'cutmix')", "(torch.ones(1,2,2), torch.tensor([5]), 3, .5, 'cutmix')", "(torch.ones(1,2,2), torch.tensor([0]), 3, .5, 'nothing')"]
