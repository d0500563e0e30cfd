import os

import torch
import torch.nn.functional as F
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class GraphConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.lin = nn.Linear(i, o, bias=False)
        self.bias = nn.Parameter(torch.zeros(o))

    def forward(self, x, edges, norm):
        h = self.lin(x)
        src, dst = edges
        return torch.zeros_like(h).index_add_(0, dst, h[src] * norm[:, None]) + self.bias


class Gcn(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.conv1 = GraphConv(features, 16)
        self.conv2 = GraphConv(16, classes)

    def forward(self, x, edges, norm):
        x = F.dropout(x, 0.5, self.training)
        x = F.relu(self.conv1(x, edges, norm))
        x = F.dropout(x, 0.5, self.training)
        return F.log_softmax(self.conv2(x, edges, norm), dim=1)


def graph(n=50, classes=3):
    y = torch.arange(n) % classes
    x = F.one_hot(y, 10).float() + torch.randn(n, 10)
    same = (y[:, None] == y[None]) & (torch.rand(n, n) < 0.2)
    a = (same | same.T | torch.eye(n, dtype=torch.bool)).nonzero().T
    degree = torch.bincount(a[1], minlength=n).float()
    return x, y, a, (degree[a[0]] * degree[a[1]]).rsqrt()


def main():
    torch.manual_seed(SEED)
    x, y, edges, norm = graph()
    order = torch.randperm(len(y))
    train, val = order[:12], order[12:30]
    model = Gcn(10, 3)
    opt = torch.optim.Adam(
        [{"params": model.conv1.parameters(), "weight_decay": 5e-4}, {"params": model.conv2.parameters()}], lr=0.01
    )

    def fit():
        model.train()
        opt.zero_grad()
        loss = F.nll_loss(model(x, edges, norm)[train], y[train])
        loss.backward()
        opt.step()
        return loss.item()

    @torch.no_grad()
    def test():
        model.eval()
        pred = model(x, edges, norm).argmax(1)
        return [(pred[m] == y[m]).float().mean().item() for m in (train, val)]

    for epoch in range(STEPS):
        print(epoch, fit(), *test())


main()
