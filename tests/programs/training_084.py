import torch
import torch.nn.functional as F
from torch import nn

class Unet(nn.Module):
    def __init__(self, c, depth):
        super().__init__()
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for i in range(depth):
            self.down.append(nn.Conv1d(c * 2 ** i, c * 2 ** (i + 1), 3, padding='same'))
            self.up.insert(0, nn.ConvTranspose1d(c * 2 ** (i + 1), c * 2 ** i, 2, stride=2))
        self.temb = nn.Embedding.from_pretrained(torch.eye(4))
        for p in self.parameters(): p.data.fill_(.05)
    def forward(self, x, t):
        skips = []
        x = x + self.temb(t).mean(-1).view(-1, 1, 1)
        for d in self.down:
            x = F.silu(d(x)); skips.append(x)
            x = F.avg_pool1d(x, 2) if x.shape[-1] > 1 else x
        for u in self.up:
            s = skips.pop()
            if x.shape[-1] != s.shape[-1]: x = F.interpolate(x, s.shape[-1])
            x = u(x + s)[..., ::2]
        assert not skips
        return x

@torch.no_grad()
def sample(net, shape, steps, gen, guide=None, on_step=None):
    x = torch.randn(shape, generator=gen)
    ts = torch.linspace(3, 0, steps).round().long()
    for i, (t, t_next) in enumerate(zip(ts, torch.cat([ts[1:], torch.tensor([-1])]))):
        eps = net(x, t.repeat(shape[0]))
        if guide: eps = eps + guide * (eps - net(x * 0, t.expand(shape[0])))
        a = 1 - t.float() / 5
        x0 = (x - (1 - a).sqrt() * eps) / a.sqrt()
        lim = x0.abs().flatten(1).quantile(.9, dim=1).clamp(min=1).view(-1, 1, 1) if x0.numel() else 1.
        x0 = x0.clamp(-lim, lim) / lim if isinstance(lim, torch.Tensor) else x0
        if t_next < 0: x = x0; break
        an = 1 - t_next / 5
        x = an.sqrt() * x0 + (1 - an).sqrt() * eps
        if on_step and on_step(i, x) is False: print('cancelled', i); break
    return x, i

def program(c, n, depth, steps, guide):
    net = Unet(c, depth)
    gen = torch.Generator().manual_seed(5)
    seen = []
    def cb(i, x):
        seen.append(x.std().item() if x.numel() > 1 else 0.)
        return len(seen) < 3
    try: x, i = sample(net, (2, c, n), steps, gen, guide, cb)
    except (RuntimeError, UnboundLocalError, IndexError) as e: return type(e).__name__, [round(s, 3) for s in seen], net.temb.weight
    loss = net(x, torch.tensor([0, 3])).square().mean()
    loss.backward()
    return x, i, [round(s, 4) for s in seen], loss.detach(), [None if p.grad is None else p.grad.norm() for p in net.parameters()], net.temb.weight.requires_grad, sample.__name__, torch.is_grad_enabled(), x.requires_grad

CALLS = ["(1, 8, 2, 3, None)", "(2, 5, 1, 4, 1.5)", "(1, 1, 2, 2, 0)", "(1, 4, 0, 2, None)", "(1, 4, 1, 0, None)", "(1, 4, 1, 6, .5)"]
