import torch
from torch import nn
from contextlib import contextmanager

@contextmanager
def frozen(*modules):
    old = [(p, p.requires_grad) for m in modules for p in m.parameters()]
    for p, _ in old:
        p.requires_grad_(False)
    try:
        yield len(old)
    finally:
        for p, flag in old:
            p.requires_grad_(flag)

class GAN(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.g = nn.Linear(2, d)
        self.d = nn.Sequential(nn.Linear(d, 3), nn.LeakyReLU(0.2), nn.Linear(3, 1))

def bce(logits, target):
    return nn.functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target))

def program(real, rounds, seed=0):
    torch.manual_seed(seed)
    gan = GAN(real.shape[1])
    g_opt = torch.optim.RMSprop(gan.g.parameters(), lr=0.01)
    d_opt = torch.optim.SGD(gan.d.parameters(), lr=0.1)
    trace = []
    for i in range(rounds):
        z = torch.randn(len(real), 2)
        fake = gan.g(z)
        d_loss = bce(gan.d(real), 1.0) + bce(gan.d(fake.detach()), 0.0)
        d_opt.zero_grad()
        d_loss.backward()
        d_opt.step()
        with frozen(gan.d) as n:
            g_loss = bce(gan.d(fake), 1.0)
            g_opt.zero_grad()
            g_loss.backward()
            g_opt.step()
        trace.append((d_loss.item(), g_loss.item(), n, all(p.requires_grad for p in gan.parameters())))
        if d_loss.item() < g_loss.item():
            print('generator behind', i)
    return trace, [p.grad for p in gan.d.parameters()], gan.g.weight, torch.rand(2)

CALLS = ["(torch.ones(4,3), 2)", "(torch.ones(4,3), 2)", "(torch.ones(4,3), 3, 5)", "(torch.zeros(1,2)-5, 2)", "(torch.zeros(0,2), 1)"]
