import torch
from torch import nn

class Freezable:
    """mixin: unfreeze layer by layer on a schedule"""
    frozen = property(lambda self: [n for n, p in self.named_parameters() if not p.requires_grad])
    def freeze_until(self, name):
        hit = False
        for n, child in self.named_children():
            hit = hit or n == name
            child.requires_grad_(hit)
            child.train(hit and self.training)
        return self if hit else None

class Net(Freezable, nn.Module):
    def __init__(self, dims):
        super().__init__()
        for i, (a, b) in enumerate(zip(dims, dims[1:])):
            setattr(self, f'l{i}', nn.Sequential(nn.Linear(a, b), nn.Dropout(0.5)))
        self.n = len(dims) - 1
    def forward(self, x):
        for i in range(self.n):
            x = getattr(self, f'l{i}')(x)
            if i < self.n - 1:
                x = x.relu()
        return x

def program(x, dims, schedule):
    torch.manual_seed(2)
    net = Net([x.shape[1], *dims])
    opt = torch.optim.AdamW(net.parameters(), lr=.05, weight_decay=.1)
    before = {n: p.detach().clone() for n, p in net.named_parameters()}
    changed, log = {}, []
    for epoch, name in enumerate(schedule):
        if net.freeze_until(name) is None:
            print('no layer', name)
            continue
        log.append((len(net.frozen), [m.training for m in net.children()]))
        loss = net(x).square().mean()
        opt.zero_grad()
        try:
            loss.backward()
        except RuntimeError as e:
            log.append(str(e)[:40]); continue
        opt.step()
        for n, p in net.named_parameters():
            if not torch.equal(before[n], p):
                changed.setdefault(n, epoch)
    st = {i: sorted(s) for i, s in opt.state_dict()['state'].items()}
    opt.add_param_group({'params': [nn.Parameter(torch.ones(1))], 'lr': 1.})
    try:
        opt.add_param_group({'params': net.l0.parameters()})
    except (ValueError, AttributeError) as e:
        dup = type(e).__name__
    return changed, log, st, net.frozen, dup, len(opt.param_groups), Net.__mro__[1].__name__, [p.grad is None for p in net.parameters()]

CALLS = ["(torch.ones(2,3), [4,1], ['l1','l0'])", "(torch.linspace(0,1,6).reshape(2,3), [2,2,1], ['l2','lx','l1'])", "(torch.ones(2,3), [1], ['nope'])", "(torch.ones(0,3), [2], ['l0'])", "(torch.ones(2,3), [], ['l0'])"]
