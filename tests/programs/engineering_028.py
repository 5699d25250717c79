import torch
import numpy as np

def group_params(model, decay):
    groups = {'decay': [], 'plain': []}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        groups['plain' if p.ndim < 2 or name.endswith('bias') else 'decay'].append((name, p))
    return [dict(params=[p for _, p in v], names=[n for n, _ in v], weight_decay=decay if k == 'decay' else 0.) for k, v in groups.items() if v]

class Net(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.inp = torch.nn.Linear(d, d)
        self.norm = torch.nn.LayerNorm(d)
        self.out = torch.nn.Linear(d, 1, bias=False)
        self.register_buffer('steps', torch.tensor(0))
        for i, p in enumerate(self.parameters()):
            with torch.no_grad():
                p.fill_(0.1 * (i + 1))
    def forward(self, x):
        if self.training:
            self.steps += 1
        return self.out(self.norm(self.inp(x) + x)).squeeze(-1)

def program(x, y, epochs, freeze):
    net = Net(x.shape[1])
    for name in freeze:
        net.get_submodule(name).requires_grad_(False)
    opt = torch.optim.AdamW(group_params(net, 0.1), lr=0.05)
    losses = np.zeros(epochs)
    for e in range(epochs):
        net.train(e % 2 == 0)
        opt.zero_grad()
        loss = (net(x) - y).abs().mean()
        loss.backward()
        losses[e] = loss.item()
        if losses[e] <= losses[:e].min(initial=np.inf):
            best = e
            opt.step()
        else:
            print('worse', e)
            for g in opt.param_groups:
                g['lr'] *= .1
    return losses, best, net.steps, net.state_dict(), [g['names'] for g in opt.param_groups], [g['lr'] for g in opt.param_groups]

CALLS = ["(torch.eye(3), torch.ones(3), 3, [])", "(torch.arange(8.).view(2,4), torch.zeros(2), 4, ['inp'])", "(torch.ones(1,2), torch.ones(1), 2, ['norm', 'out'])"]
