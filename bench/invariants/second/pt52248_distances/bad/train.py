"""Metric learning with a contrastive loss over all pairs of a batch. An update is skipped when its norm overflows."""
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def pairwise_distances(z):
    squared = (z.unsqueeze(1) - z.unsqueeze(0)).pow(2).sum(-1)
    apart = squared > 0
    return torch.where(apart, squared.sqrt(), torch.zeros_like(squared))


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=1.5):
        super().__init__()
        self.margin = margin

    def forward(self, z, labels):
        distance = pairwise_distances(z)
        same = labels.unsqueeze(1) == labels.unsqueeze(0)
        pull = distance.pow(2)
        push = (self.margin - distance).clamp(min=0).pow(2)
        return torch.where(same, pull, push).mean()


class Trainer:
    def __init__(self, model, lr=0.1, max_norm=1.0):
        self.model = model
        self.criterion = ContrastiveLoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.max_norm = max_norm
        self.updates, self.skipped = 0, 0

    def step(self, x, labels):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(x), labels)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        if torch.isfinite(norm):
            self.optimizer.step()
            self.updates += 1
        else:
            self.skipped += 1
        return loss.item()

    def fit(self, loader, steps):
        self.model.train()
        seen = 0
        while seen < steps:
            for x, labels in loader:
                loss = self.step(x, labels)
                seen += 1
                print(f"batch {seen} loss {loss:.5f}")
                if seen == steps:
                    break


def main():
    torch.manual_seed(SEED)
    labels = torch.arange(96) % 6
    centers = torch.randn(6, 12)
    data = TensorDataset(centers[labels] + 0.5 * torch.randn(96, 12), labels)
    model = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 4))
    trainer = Trainer(model)
    trainer.fit(DataLoader(data, batch_size=24, shuffle=True), STEPS)


if __name__ == "__main__":
    main()
