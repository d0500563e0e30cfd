import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        return x + self.fc2(torch.relu(self.fc1(x)))


class ResMlp(nn.Module):
    def __init__(self, d, depth):
        super().__init__()
        self.inp = nn.Linear(d, d)
        self.blocks = [Residual(d) for _ in range(depth)]
        self.out = nn.Linear(d, d)

    def forward(self, x):
        x = self.inp(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x)
