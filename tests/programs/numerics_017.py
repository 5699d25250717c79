import torch
from torch import nn

class MoE(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(d, d) for _ in range(n)])
        self.gate = nn.Linear(d, n)
        self.usage = [0] * n
    def __getitem__(self, i):
        return self.experts[i]
    def __len__(self):
        return len(self.experts)
    def __contains__(self, m):
        return any(m is e for e in self.experts)
    def forward(self, x):
        probs = self.gate(x).softmax(-1)
        weight, idx = probs.max(-1)
        out = torch.zeros_like(x)
        for i in idx.unique().tolist():
            rows = (idx == i).nonzero(as_tuple=True)[0]
            out[rows] += weight[rows, None] * self[i](x[rows])
            self.usage[i] += len(rows)
        return out

def program(x, n, rounds=2):
    torch.manual_seed(4)
    moe = MoE(x.shape[-1], n)
    for r in range(rounds):
        x = moe(x).detach() * 3
        if max(moe.usage) > 0.9 * sum(moe.usage) and len(moe) > 1:
            worst = moe.usage.index(min(moe.usage))
            print('collapse', worst)
            moe.experts[worst].load_state_dict(moe[moe.usage.index(max(moe.usage))].state_dict())
    y = moe(x)
    y.sum().backward()
    grads = [e.weight.grad is not None for e in moe.experts]
    return y, moe.usage, grads, moe.gate.weight.grad, moe[0] in moe, nn.Linear(1, 1) in moe, bool(moe)

CALLS = ["(torch.eye(4), 3)", "(torch.eye(4), 3)", "(torch.ones(2,2), 2, 1)", "(torch.ones(1,2), 1, 0)", "(torch.ones(0,2), 2)"]
