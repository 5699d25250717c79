import torch
import contextlib

class EMA:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}
        self.n = 0
    def update(self, model):
        self.n += 1
        d = min(self.decay, (1 + self.n) / (10 + self.n))
        for n, p in model.named_parameters():
            self.shadow[n].mul_(d).add_(p.detach(), alpha=1 - d)
    @contextlib.contextmanager
    def swapped(self, model):
        backup = {n: p.data.clone() for n, p in model.named_parameters()}
        for n, p in model.named_parameters():
            p.data.copy_(self.shadow[n])
        try:
            yield model
        finally:
            for n, p in model.named_parameters():
                p.data.copy_(backup[n])

def program(x, steps, fail):
    model = torch.nn.Linear(x.shape[1], 1)
    torch.nn.init.constant_(model.weight, 0.5)
    torch.nn.init.zeros_(model.bias)
    ema = EMA(model)
    for s in range(steps):
        loss = model(x).square().mean()
        g = torch.autograd.grad(loss, model.parameters())
        with torch.no_grad():
            for p, d in zip(model.parameters(), g):
                p -= 0.1 * d
        ema.update(model)
        if loss.item() < 0.05:
            break
    out = None
    try:
        with ema.swapped(model) as m, torch.no_grad():
            out = m(x)
            if out.abs().max() > fail:
                raise RuntimeError('too large')
            out = out * 10
    except RuntimeError as e:
        print('caught', e)
    return out, ema.shadow, model.weight, torch.is_grad_enabled(), ema.n, s

CALLS = ["(torch.eye(2), 3, 10.)", "(torch.ones(3,2) * 3, 2, .1)", "(torch.zeros(1,1), 5, 1.)", "(torch.eye(2), 3, 0.)"]
