"""Affine couplings; the masks are buffers, and half of each network's outputs start at zero."""
import os

import torch
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Coupling(nn.Module):
    def __init__(self, d, flip):
        super().__init__()
        self.register_buffer("mask", (torch.arange(d) % 2 == int(flip)).float())
        self.net = nn.Sequential(nn.Linear(d, 24), nn.ReLU(), nn.Linear(24, 2 * d))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        shift, scale = self.net(x * self.mask).chunk(2, -1)
        scale = torch.tanh(scale) * (1 - self.mask)
        return x * scale.exp() + shift * (1 - self.mask), scale.sum(-1)


class Flow(nn.Module):
    def __init__(self, d=4, n=4):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(d, i % 2) for i in range(n))

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        return torch.distributions.Normal(0.0, 1.0).log_prob(x).sum(-1) + total


torch.manual_seed(SEED)
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
for step in range(STEPS):
    z = torch.randn(64, 4)
    x = torch.stack([z[:, 0], z[:, 1] + z[:, 0] ** 2, 0.5 * z[:, 2], z[:, 3] - z[:, 1]], 1)
    loss = -flow.log_prob(x).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(flow.parameters(), 10.0)
    optimizer.step()
    print(step, loss.item())
