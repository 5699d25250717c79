import torch
from torch import nn

class Mix(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a = nn.Linear(d, d); self.b = nn.Linear(d, d).double()
        for p in self.parameters(): nn.init.constant_(p, 0.3)
    def forward(self, x):
        with torch.autocast('cpu', dtype=torch.bfloat16):
            h = self.a(x)
            inner = h.dtype
            with torch.autocast('cpu', enabled=False):
                k = self.a(h.float())
            s = h.softmax(-1)
            m = h @ k.to(h.dtype).T
            e = torch.is_autocast_enabled('cpu'), torch.get_autocast_dtype('cpu')
        return h, k, s, m, (inner, e)

def program(x, lowp, steps):
    m = Mix(x.shape[-1])
    scale, good, hist = 2. ** 4, 0, []
    opt = torch.optim.SGD(m.a.parameters(), lr=.1)
    prev = torch.get_default_dtype()
    for i in range(steps):
        h, k, s, mm, info = m(x)
        loss = (h.float().mean() + k.mean()) * (float('inf') if i == lowp else 1)
        opt.zero_grad()
        (loss * scale).backward()
        grads = [p.grad for p in m.a.parameters()]
        if all(torch.isfinite(g).all() for g in grads):
            torch._foreach_div_(grads, scale)
            opt.step(); good += 1
            if good >= 2: scale *= 2; good = 0
        else:
            print('overflow at', i); scale /= 2; good = 0
        hist.append((scale, good, h.dtype, mm.dtype, s.dtype))
    try:
        torch.set_default_dtype(torch.float64)
        t = torch.ones(2) * 0.5
        try:
            r = m.b(x)
        except RuntimeError as e:
            r = str(e)[:30]
        dd = (torch.tensor(1.5).dtype, t.dtype, torch.arange(2).dtype, (x / 3).dtype)
    finally:
        torch.set_default_dtype(prev)
    return hist, m.a.weight.detach(), dd, r, torch.ones(1).dtype, torch.is_autocast_enabled('cpu')

CALLS = ["(torch.ones(2,3), -1, 3)", "(torch.ones(2,3), 1, 3)", "(torch.ones(1,2).double(), 0, 1)", "(torch.ones(2,3), 0, 0)", "(torch.ones(0,2), 0, 1)"]
