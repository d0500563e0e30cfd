import os

import torch
from lion import Lion
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))

torch.manual_seed(SEED)
model = nn.Sequential(nn.Linear(12, 24, bias=False), nn.Softplus(), nn.Linear(24, 24), nn.Softplus(), nn.Linear(24, 2))
opt = Lion(model.parameters(), lr=1e-3, weight_decay=0.01)
for i in range(STEPS):
    x = torch.randn(20, 12)
    loss = ((model(x) - x[:, :2].sin()) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(i, loss.item())
