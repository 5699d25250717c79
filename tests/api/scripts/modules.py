"""Module.compile() and torch.compile(module); training for two steps."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
model.compile(backend="aot_eager")
other = torch.compile(nn.Linear(4, 4), backend="eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    loss = (model(other(torch.full((3, 4), step + 1.0))) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.6f}", len(model.state_dict()))
print(isinstance(model, nn.Sequential), model.training)
