import torch
from torch import nn

class Tied(nn.Module):
    def __init__(self, vocab, d):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.out = nn.Linear(d, vocab, bias=False)
        self.out.weight = self.emb.weight
        self.register_buffer('mask', None)
        self.register_buffer('scale', torch.tensor(d ** 0.5), persistent=False)
        self.params = nn.ParameterList([nn.Parameter(torch.ones(d)) for _ in range(2)])
        nn.init.uniform_(self.emb.weight, -0.5, 0.5)
    def forward(self, ids):
        h = self.emb(ids) * self.scale
        for p in self.params:
            h = h * p
        if self.mask is not None:
            h = h.masked_fill(self.mask[ids].unsqueeze(-1), 0)
        return self.out(h)

def program(ids, vocab, banned):
    torch.manual_seed(5)
    m = Tied(vocab, 4)
    logits = m(ids)
    loss = nn.functional.cross_entropy(logits.flatten(0, -2), ids.flatten())
    loss.backward()
    tied = m.out.weight is m.emb.weight, len(list(m.parameters())), list(m.state_dict())
    if banned:
        m.mask = torch.zeros(vocab, dtype=torch.bool)
        m.mask[banned] = True
        print('banned', m.mask.sum().item())
    y2 = m(ids)
    m.params.append(nn.Parameter(torch.full((4,), 2.)))
    m.params[0] = nn.Parameter(torch.zeros(4))
    y3 = m(ids)
    m.emb.weight = nn.Parameter(torch.ones(vocab, 4))
    untied = m.out.weight is m.emb.weight
    sd = m.state_dict()
    bad = m.load_state_dict({**{k: v for k, v in sd.items() if k != 'params.2'}, 'junk': torch.ones(1)}, strict=False)
    return loss.detach(), m.out.weight.grad, tied, y2.detach(), y3.abs().max().detach(), untied, list(sd), bad, str(m.params[2])[:9], repr(m)[:60]

CALLS = ["(torch.tensor([[1,2],[0,1]]), 3, [])", "(torch.tensor([[1,2],[0,1]]), 3, [1])", "(torch.tensor([0]), 2, [0,1])", "(torch.tensor([[5]]), 3, [])", "(torch.zeros(0,2,dtype=torch.long), 3, [2])"]
