import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Charbonnier(nn.Module):
    """A smooth L1."""

    def __init__(self, eps=1e-3):
        super().__init__()
        self.eps = eps

    def forward(self, pred, target):
        return torch.sqrt((pred - target) ** 2 + self.eps**2).mean()


class Tabular(nn.Module):
    def __init__(self, numeric, categories, d=6):
        super().__init__()
        self.cat = nn.ModuleList(nn.Embedding(c, d) for c in categories)
        width = numeric + d * len(categories)
        self.mlp = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))

    def forward(self, x, c):
        return self.mlp(torch.cat([x, *(e(c[:, i]) for i, e in enumerate(self.cat))], 1))


def main():
    torch.manual_seed(SEED)
    x, c = torch.randn(96, 5), torch.randint(0, 4, (96, 2))
    y = x[:, 0] * 2 + c[:, 0].float() - c[:, 1].float()
    loader = DataLoader(TensorDataset(x, c, y), batch_size=16, shuffle=True)
    model, criterion = Tabular(5, [4, 4]), Charbonnier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    model.train()
    step = 0
    while step < STEPS:
        for numeric, categories, target in loader:
            pred = model(numeric, categories).squeeze(-1)
            loss = criterion(pred, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        print(step, loss.item())


main()
