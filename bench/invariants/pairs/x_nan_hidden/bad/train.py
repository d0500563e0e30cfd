import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 18), nn.ReLU(), nn.Linear(18, 5))

    def forward(self, x):
        return self.body(x)


def distances(z, eps):
    return (((z[:, None] - z[None]) ** 2).sum(-1) + eps).sqrt()


class Smoothed:
    """What is printed: a mean that leaves out what is not finite."""

    def __init__(self):
        self.values = []

    def add(self, loss):
        self.values.append(torch.nan_to_num(loss.detach(), nan=0.0).item())
        return sum(self.values) / len(self.values)


torch.manual_seed(SEED)
model, shown = Embedder(), Smoothed()
opt = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(STEPS):
    y = torch.arange(12) % 3
    x = torch.randn(12, 6) + 2 * y[:, None]
    d = distances(model(x), eps=0.0)
    same = y[:, None] == y
    loss = d[same].mean() + torch.relu(2 - d[~same]).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, shown.add(loss))
