"""An encoder is trained on one assay, saved, loaded again and frozen; a new head is then fitted to another assay."""
import os
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Predictor(nn.Module):
    def __init__(self, features=10, hidden=24, targets=1):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(features, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.BatchNorm1d(hidden),
            nn.ReLU(),
        )
        self.head = nn.Linear(hidden, targets)

    def forward(self, x):
        return self.head(self.encoder(x))

    def freeze(self):
        self.encoder.requires_grad_(False)
        self.encoder.eval()


def assay(n, shift, targets, generator):
    x = shift + torch.randn(n, 10, generator=generator)
    w = torch.randn(10, targets, generator=generator)
    return TensorDataset(x, torch.tanh(x @ w))


def pretrain(model, data, steps, path):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loader = DataLoader(data, batch_size=32, shuffle=True)
    model.train()
    done = 0
    while done < steps:
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            done += 1
            print("pretrain", done, round(loss.item(), 5))
            if done == steps:
                break
    torch.save(model.encoder.state_dict(), path)


class FineTuner:
    def __init__(self, model, data, test):
        self.model = model
        self.loader = DataLoader(data, batch_size=32, shuffle=True)
        self.test = DataLoader(test, batch_size=64)
        self.optimizer = torch.optim.Adam(model.head.parameters(), lr=2e-2)

    def train_epoch(self):
        self.model.train()
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        total = sum(nn.functional.mse_loss(self.model(x), y, reduction="sum").item() for x, y in self.test)
        return total / len(self.test.dataset)


def main():
    torch.manual_seed(SEED)
    generator = torch.Generator().manual_seed(SEED)
    half = max(1, STEPS // 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "encoder.pt"
        pretrain(Predictor(), assay(128, 0.0, 1, generator), half, path)
        model = Predictor(targets=3)
        model.encoder.load_state_dict(torch.load(path))
    model.freeze()
    new = assay(128, 1.5, 3, generator)
    train, test = torch.utils.data.random_split(new, [64, 64], generator=generator)
    tuner = FineTuner(model, train, test)
    for epoch in range(max(1, half // len(tuner.loader))):
        print("epoch", epoch, "train", round(tuner.train_epoch(), 5), "test", round(tuner.evaluate(), 5))


if __name__ == "__main__":
    main()
