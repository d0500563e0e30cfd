import os
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Triplets(Dataset):
    """An anchor, another of its class, one of another class; which ones is drawn anew each time."""

    def __init__(self, n=60, classes=5):
        self.label = torch.arange(n) % classes
        self.x = torch.randn(n, 20) + self.label[:, None].float()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        same = [j for j in range(len(self)) if self.label[j] == self.label[i] and j != i]
        other = [j for j in range(len(self)) if self.label[j] != self.label[i]]
        return self.x[i], self.x[random.choice(same)], self.x[random.choice(other)]


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 32), nn.PReLU(), nn.Linear(32, 8))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=-1)


class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.criterion = nn.TripletMarginLoss(margin=0.3)
        self.optimizer = torch.optim.Adamax(model.parameters(), lr=5e-3)

    def train_step(self, anchor, positive, negative):
        a, p, n = self.model(anchor), self.model(positive), self.model(negative)
        loss = self.criterion(a, p, n)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, steps):
        done = 0
        self.model.train()
        while True:
            for batch in self.loader:
                loss = self.train_step(*batch)
                done += 1
                print(done, loss)
                if done >= steps:
                    return


if __name__ == "__main__":
    random.seed(SEED)
    torch.manual_seed(SEED)
    Trainer(Embedder(), DataLoader(Triplets(), batch_size=12, shuffle=True, drop_last=True)).fit(STEPS)
