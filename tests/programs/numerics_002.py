import torch
from torch import nn
import copy

class EMA:
    def __init__(self, model, decay=0.9):
        self.model = model
        self.decay = decay
        self.shadow = {k: v.detach().clone() for k, v in model.named_parameters()}
        self.backup = None
        self.updates = 0

    @torch.no_grad()
    def update(self):
        self.updates += 1
        d = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for name, p in self.model.named_parameters():
            self.shadow[name].mul_(d).add_(p, alpha=1 - d)
        return d

    def __enter__(self):
        self.backup = {k: p.detach().clone() for k, p in self.model.named_parameters()}
        with torch.no_grad():
            for k, p in self.model.named_parameters():
                p.copy_(self.shadow[k])
        return self.model

    def __exit__(self, *exc):
        with torch.no_grad():
            for k, p in self.model.named_parameters():
                p.copy_(self.backup[k])
        self.backup = None
        return False

def program(data, steps, accumulate=2):
    torch.manual_seed(3)
    model = nn.Linear(data.size(-1), 2)
    ema = EMA(model)
    opt = torch.optim.Adam(model.parameters(), lr=0.05)
    log = []
    for step in range(steps):
        batch = data[step % len(data)]
        loss = model(batch).pow(2).sum() / accumulate
        loss.backward()
        if (step + 1) % accumulate == 0:
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            log.append(f'{step}: {norm.item():.3f}')
            opt.step()
            opt.zero_grad(set_to_none=True)
            log.append(ema.update())
    with ema as m:
        with torch.no_grad():
            ema_out = m(data)
    grads = {k: None if p.grad is None else p.grad.clone() for k, p in model.named_parameters()}
    print('updates', ema.updates)
    return log, ema_out, model(data), grads, ema.shadow

CALLS = ["(torch.arange(6.).reshape(2,3), 4)", "(torch.arange(6.).reshape(2,3), 5)",
 "(torch.ones(1,4)*3, 3, 1)", "(torch.zeros(3,2), 7, 3)"]
