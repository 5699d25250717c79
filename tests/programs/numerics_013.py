import torch
from torch import nn

class TiedAutoencoder(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.enc = nn.Linear(d, h, bias=False)
        self.dec = nn.Linear(h, d, bias=False)
        self.dec.weight = nn.Parameter(self.enc.weight.t().contiguous())
        self.alias = self.enc
        self._cache = {}
    def tie(self):
        self.dec_w = self.enc.weight
        del self.dec
        return self
    def forward(self, x):
        key = (tuple(x.shape), x.data_ptr())
        h = self.alias(x)
        if hasattr(self, 'dec'):
            out = self.dec(h)
        else:
            out = h @ self.dec_w
        self._cache[tuple(x.shape)] = out.detach()
        return out

def program(x, h):
    torch.manual_seed(2)
    m = TiedAutoencoder(x.shape[1], h)
    untied = m(x)
    names = [n for n, _ in m.named_parameters()]
    all_names = [n for n, _ in m.named_parameters(remove_duplicate=False)]
    m.tie()
    tied = m(x)
    loss = (tied - x).pow(2).mean()
    loss.backward()
    same = m.dec_w is m.enc.weight and m.dec_w.grad is m.alias.weight.grad
    sd = m.state_dict()
    with torch.no_grad():
        m.enc.weight.zero_()
    print(sorted(sd), loss.item() > 0.5)
    after = m(x)
    return untied, tied, after, names, all_names, same, sd, m._cache, sd['dec_w'].data_ptr() == sd['enc.weight'].data_ptr()

CALLS = ["(torch.eye(3), 2)", "(torch.eye(3), 2)", "(torch.ones(2,4)*3, 1)", "(torch.ones(2,4), 0)"]
