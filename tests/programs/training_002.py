import torch
from torch import nn

LOG = []

class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.lin = nn.Linear(d, d, bias=False)
        self.register_buffer('calls', torch.zeros((), dtype=torch.long))
        nn.init.constant_(self.lin.weight, 0.25)
    def forward(self, x):
        self.calls += 1
        return torch.tanh(self.lin(x)) + x

def program(x, depth, lrs):
    torch.manual_seed(0)
    d = x.shape[-1]
    net = nn.Sequential(*[Block(d) for _ in range(depth)])
    head = nn.Linear(d, 1)
    groups = [{'params': list(b.parameters()), 'lr': lr, 'name': f'b{i}'} for i, (b, lr) in enumerate(zip(net, lrs))]
    groups.append({'params': head.parameters()})
    opt = torch.optim.SGD(groups, lr=0.1, momentum=0.5)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda e: 0.5 ** e)
    losses = []
    for epoch in range(3):
        opt.zero_grad(set_to_none=epoch % 2 == 0)
        out = head(net(x)).squeeze(-1)
        loss = out.pow(2).mean()
        loss.backward()
        total = nn.utils.clip_grad_norm_(head.parameters(), 0.5)
        opt.step(); sched.step()
        losses.append(loss.detach())
        LOG.append((epoch, [g['lr'] for g in opt.param_groups]))
        if total > 1:
            print(f'clipped {float(total):.3f}')
    return torch.stack(losses), [int(b.calls) for b in net], sched.get_last_lr(), [g.get('name') for g in opt.param_groups], len(LOG), head.weight.detach().clone()

CALLS = ["(torch.ones(2,3), 2, [0.1, 0.2])", "(torch.arange(4.).reshape(2,2), 1, [0.1])", "(torch.ones(2,3)*5, 3, [0.0])", "(torch.ones(1,3), 0, [])", "(torch.ones(2,3), 2, [-1.0, 0.1])"]
