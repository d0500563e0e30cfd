"""Forecasting: windows of a series in the order of time, two epochs in that order; statistics only of the past."""
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, SequentialSampler

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Windows(Dataset):
    def __init__(self, series, width):
        self.series, self.width = series, width

    def __len__(self):
        return len(self.series) - self.width

    def __getitem__(self, i):
        return self.series[i : i + self.width], self.series[i + self.width]


class Tcn(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.c1 = nn.utils.parametrizations.weight_norm(nn.Conv1d(1, 8, 2, dilation=1))
        self.c2 = nn.utils.parametrizations.weight_norm(nn.Conv1d(8, 8, 2, dilation=2))
        self.out = nn.Linear(8, 1)

    def forward(self, x):
        h = torch.relu(self.c1(nn.functional.pad(x[:, None], (1, 0))))
        h = torch.relu(self.c2(nn.functional.pad(h, (2, 0))))
        return self.out(h[..., -1]).squeeze(-1)


def main():
    torch.manual_seed(SEED)
    t = torch.arange(72.0)
    series = (t / 5).sin() + 0.3 * (t / 2).cos() + 0.05 * torch.randn(72)
    data = Windows(series, 8)
    loader = DataLoader(data, batch_size=16, sampler=SequentialSampler(data))
    model = Tcn()
    opt = torch.optim.ASGD(model.parameters(), lr=0.05)
    for epoch in range(max(2, STEPS // 4)):
        for x, y in loader:
            opt.zero_grad()
            loss = nn.functional.huber_loss(model(x), y)
            loss.backward()
            opt.step()
        print(epoch, loss.item())


main()
