import torch, torch.nn as nn, copy
from collections import OrderedDict
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(OrderedDict(a=nn.Linear(3, 4), act=nn.Tanh(), b=nn.Linear(4, 2)))
        self.register_buffer('steps', torch.zeros((), dtype=torch.long))
        self.register_buffer('tmp', torch.ones(1), persistent=False)
    def forward(self, x):
        self.steps += 1
        return self.enc(x) * self.tmp
def checkpoint(m, opt, epoch, best):
    return {'model': {k: v.clone() for k, v in m.state_dict().items()}, 'opt': copy.deepcopy(opt.state_dict()), 'epoch': epoch, 'best': best}
def restore(m, opt, ck, strict=True):
    res = m.load_state_dict(ck['model'], strict=strict)
    opt.load_state_dict(ck['opt'])
    return list(res.missing_keys), list(res.unexpected_keys)
def program(x, y, epochs, patience):
    torch.manual_seed(0)
    m = Net()
    opt = torch.optim.SGD(m.parameters(), lr=.1, momentum=.9)
    best, bad, log, ck = float('inf'), 0, [], None
    for e in range(epochs):
        opt.zero_grad(set_to_none=bool(e % 2))
        loss = ((m(x) - y) ** 2).mean()
        loss.backward()
        opt.step()
        l = loss.item()
        log.append(round(l, 4))
        if l < best - 1e-3:
            best, bad = l, 0
            ck = checkpoint(m, opt, e, best)
        else:
            bad += 1
            if bad > patience:
                print('stop at', e)
                break
    else:
        print('ran all')
    missing = None
    if ck is not None:
        ck['model']['extra.weight'] = torch.ones(1)
        del ck['model']['enc.b.bias']
        try:
            restore(m, opt, ck)
        except RuntimeError as e:
            msg = str(e).splitlines()[0]
        missing = restore(m, opt, ck, strict=False), msg
    return log, best, missing, m.steps, sorted(m.state_dict()), [p.grad is None for p in m.parameters()], m.enc.b.weight
CALLS = ["(torch.ones(2,3), torch.zeros(2,2), 4, 1)", "(torch.arange(6.).reshape(2,3), torch.ones(2,2), 12, 0)", "(torch.ones(2,3), torch.zeros(2,2), 0, 1)", "(torch.zeros(1,3), torch.tensor([[1.,2.]]), 3, 0)"]
