import torch
from torch import nn
from collections import defaultdict

class Net(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.fc1 = nn.Linear(d, h)
        self.fc2 = nn.Linear(h, 1)
        self.register_buffer('steps', torch.zeros((), dtype=torch.long))

    def forward(self, x):
        if self.training:
            self.steps += 1
        h = torch.relu(self.fc1(x))
        return self.fc2(h).squeeze(-1)

def lr_at(step, base, warmup, total):
    if step < warmup:
        return base * (step + 1) / warmup
    progress = (step - warmup) / max(1, total - warmup)
    return base * 0.5 * (1 + torch.cos(torch.tensor(progress * 3.14159))).item()

def program(xs, ys, cfg):
    torch.manual_seed(cfg.get('seed', 0))
    net = Net(xs.shape[-1], cfg['hidden'])
    groups = [{'params': [p for n, p in net.named_parameters() if 'bias' in n], 'weight_decay': 0.0},
              {'params': [p for n, p in net.named_parameters() if 'bias' not in n]}]
    opt = torch.optim.AdamW(groups, lr=cfg['lr'], weight_decay=0.01)
    stats = defaultdict(list)
    total = cfg['epochs'] * len(xs)
    step = 0
    for epoch in range(cfg['epochs']):
        running = 0.0
        for x, y in zip(xs.unbind(0), ys):
            for g in opt.param_groups:
                g['lr'] = lr_at(step, cfg['lr'], 2, total)
            loss = nn.functional.mse_loss(net(x[None]), y[None])
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += float(loss)
            step += 1
        stats['loss'].append(running / len(xs))
        stats['grad_norm'].append({n: p.grad.norm().item() for n, p in net.named_parameters() if p.grad is not None})
        if running < 1e-3:
            break
    else:
        stats['done'] = True
    net.eval()
    return dict(stats), net(xs), net.steps, [g['lr'] for g in opt.param_groups]

CALLS = ["(torch.eye(3), torch.tensor([1.,2.,3.]), {'hidden': 4, 'lr': .01, 'epochs': 2})",
 "(torch.eye(3), torch.tensor([1.,2.,3.]), {'hidden': 4, 'lr': .01, 'epochs': 3, 'seed': 1})",
 "(torch.ones(2,5), torch.zeros(2), {'hidden': 1, 'lr': 1., 'epochs': 1})",
 "(torch.ones(2,5), torch.zeros(2), {'lr': 1., 'epochs': 1})"]
