import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
ACCUMULATE = 4


class Waves(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.phase = torch.rand(n, 1, generator=g) * 6.28
        self.freq = torch.rand(n, 1, generator=g) + 0.5

    def __len__(self):
        return len(self.phase)

    def __getitem__(self, i):
        t = torch.linspace(0, 6, 24)
        return torch.sin(self.freq[i] * t + self.phase[i]).unsqueeze(0), self.freq[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(1, 8, 5), nn.ReLU(), nn.Conv1d(8, 8, 5), nn.ReLU())
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.features(x).mean(-1))


def main():
    torch.manual_seed(SEED)
    # 22 batches of 4 are five full windows and a tail of two.
    loader = DataLoader(Waves(22 * 4, SEED), batch_size=4, shuffle=True)
    model, loss_fn = Net(), nn.MSELoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    updates, epoch = 0, 0
    model.train()
    while updates < STEPS:
        opt.zero_grad()
        for i, (x, y) in enumerate(loader):
            first = i - i % ACCUMULATE
            window = min(ACCUMULATE, len(loader) - first)
            (loss_fn(model(x), y) / window).backward()
            if (i + 1) % ACCUMULATE == 0 or i + 1 == len(loader):
                opt.step()
                opt.zero_grad()
                updates += 1
        epoch += 1
        print("epoch", epoch, "updates", updates)


main()
