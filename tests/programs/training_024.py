import torch
from torch import nn

class Pyramid(nn.Module):
    levels: int = 3
    def __init__(self, c, **kw):
        super().__init__()
        vars(self).update(levels=kw.pop('levels', self.levels))
        if kw:
            raise TypeError(f"unexpected {', '.join(kw)}")
        self.lateral = nn.ModuleDict({f'p{i}': nn.Conv2d(c, 2, 1) for i in range(self.levels)})
        self.smooth = nn.Conv2d(2, 2, 3, padding=1, groups=2)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.constant_(m.weight, .1); nn.init.zeros_(m.bias)
    def forward(self, x):
        feats = [x]
        while len(feats) < self.levels:
            if min(feats[-1].shape[-2:]) < 2:
                print('too small after', len(feats)); break
            feats.append(nn.functional.max_pool2d(feats[-1], 2, ceil_mode=True))
        top = None
        out = {}
        for i, f in reversed(list(enumerate(feats))):
            l = self.lateral[f'p{i}'](f)
            if top is not None:
                l = l + nn.functional.interpolate(top, size=l.shape[-2:], mode='nearest')
            out[f'p{i}'] = top = l
        *rest, last = out.items()
        out[last[0]] = self.smooth(last[1])
        return dict(sorted(out.items()))

def program(x, kw):
    try:
        net = Pyramid(x.shape[1], **kw)
    except TypeError as e:
        return str(e), x.sum()
    with torch.no_grad():
        out = net(x)
    best, where = None, None
    for name, f in out.items():
        for i in range(f.shape[0]):
            v, flat = f[i, 0].flatten().max(0)
            if best is None or v > best:
                best, where = v, (name, i, divmod(flat.item(), f.shape[-1]))
    pooled = nn.functional.adaptive_avg_pool2d(out['p0'], (1, None))
    return out, best, where, pooled, Pyramid.levels, net.levels

CALLS = ["(torch.arange(64.).reshape(1,1,8,8)/64, {})", "(torch.arange(30.).reshape(1,2,3,5)/30, {'levels': 4})", "(torch.ones(2,1,1,7), {'levels': 2})", "(torch.ones(1,1,2,2), {'depth': 2, 'x': 1})", "(torch.ones(0,1,4,4), {})", "(torch.ones(1,1,4,4), {'levels': 0})"]
