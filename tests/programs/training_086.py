import copy

import torch
import torch.nn as nn

torch.manual_seed(0)
G_M = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
G_E = torch.optim.swa_utils.AveragedModel(G_M, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
G_T = copy.deepcopy(G_M)
def program(x, train):
    G_M.train(train)
    y = G_M(x)
    if train:
        y.square().sum().backward()
        with torch.no_grad():
            for p in G_M.parameters():
                p.sub_(p.grad * 0.1)
                p.grad = None
            for p, q in zip(G_M.parameters(), G_T.parameters()): q.lerp_(p, 0.5)
            for p, q in zip(G_M.buffers(), G_T.buffers()): q.copy_(p)
        G_E.update_parameters(G_M)
    return y.detach(), G_T(x), G_E(x).detach(), int(G_E.n_averaged)
CALLS = ["(torch.arange(6.).view(3, 2), True)", "(torch.arange(6.).view(3, 2), True)", "(torch.arange(6.).view(3, 2), False)", "(torch.arange(8.).view(4, 2), True)"]
