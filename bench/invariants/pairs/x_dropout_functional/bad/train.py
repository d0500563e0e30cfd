import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Gat(nn.Module):
    """One attention head over a dense graph."""

    def __init__(self, i, o, dropout):
        super().__init__()
        self.w = nn.Linear(i, o, bias=False)
        self.left, self.right = nn.Linear(o, 1), nn.Linear(o, 1)
        self.dropout = dropout

    def forward(self, x, adjacency):
        h = self.w(x)
        e = F.leaky_relu(self.left(h) + self.right(h).T, 0.2)
        alpha = e.masked_fill(~adjacency, -1e9).softmax(dim=1)
        alpha = F.dropout(alpha, self.dropout)
        return alpha @ h


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.g1, self.g2 = Gat(12, 16, 0.4), Gat(16, 3, 0.4)

    def forward(self, x, adjacency):
        return self.g2(F.elu(self.g1(x, adjacency)), adjacency)


def main():
    torch.manual_seed(SEED)
    y = torch.arange(36) % 3
    x = torch.randn(36, 12) + F.one_hot(y, 12)
    adjacency = ((y[:, None] == y) & (torch.rand(36, 36) < 0.3)) | torch.eye(36, dtype=torch.bool)
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=1e-2, weight_decay=5e-4)
    for epoch in range(STEPS):
        net.train()
        loss = F.cross_entropy(net(x, adjacency)[:18], y[:18])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if epoch % 2 == 1:
            net.eval()
            with torch.no_grad():
                right = net(x, adjacency)[18:].argmax(1) == y[18:]
            print(epoch, loss.item(), right.float().mean().item())


main()
