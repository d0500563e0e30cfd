import math
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Pairs(Dataset):
    def __init__(self, n):
        self.a = torch.randint(0, 10, (n, 2))

    def __len__(self):
        return len(self.a)

    def __getitem__(self, i):
        return self.a[i], self.a[i].sum()


class MiniTrainer:
    def __init__(self, model, data, epochs, batch_size=2, accumulate=2):
        self.model, self.epochs, self.accumulate = model, epochs, accumulate
        self.loader = DataLoader(data, batch_size=batch_size, shuffle=True)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        updates = math.floor(len(self.loader) / accumulate)
        self.max_steps = updates * epochs
        self.global_step = 0

    def train(self):
        self.model.train()
        for epoch in range(self.epochs):
            for i, (x, y) in enumerate(self.loader):
                loss = nn.functional.cross_entropy(self.model(x), y) / self.accumulate
                loss.backward()
                if (i + 1) % self.accumulate == 0 or i + 1 == len(self.loader):
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                    self.global_step += 1
                if self.global_step >= self.max_steps:
                    break
            print("epoch", epoch, "step", self.global_step, "loss", loss.item())
            if self.global_step >= self.max_steps:
                break


def main():
    torch.manual_seed(SEED)
    model = nn.Sequential(nn.Embedding(10, 8), nn.Flatten(), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 19))
    MiniTrainer(model, Pairs(9), max(2, STEPS // 3)).train()


main()
