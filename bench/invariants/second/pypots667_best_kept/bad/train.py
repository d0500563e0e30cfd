"""Imputation of missing values in short time series; the state with the best validation error is used at the end."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
LENGTH, FEATURES = 8, 3


class Imputer(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2 * LENGTH * FEATURES, hidden), nn.ReLU(), nn.Linear(hidden, LENGTH * FEATURES)
        )

    def forward(self, values, mask):
        x = torch.cat([(values * mask).flatten(1), mask.flatten(1)], 1)
        return self.net(x).view_as(values)


def masked_error(guess, values, where):
    return ((guess - values).square() * where).sum() / where.sum()


def series(n):
    level = torch.randn(n, 1, FEATURES)
    values = level + 0.5 * torch.randn(n, LENGTH, FEATURES)
    return TensorDataset(values, (torch.rand(n, LENGTH, FEATURES) > 0.3).float())


class Trainer:
    """fit, keep the best state, restore it."""

    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.best_loss = float("inf")
        self.best_model_dict = None

    def train_epoch(self, loader):
        self.model.train()
        for values, mask in loader:
            hidden = mask * (torch.rand_like(mask) > 0.2)
            loss = masked_error(self.model(values, hidden), values, mask)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        errors = [masked_error(self.model(values, mask), values, 1 - mask).item() for values, mask in loader]
        return sum(errors) / len(errors)

    def fit(self, train_loader, val_loader, epochs):
        for epoch in range(epochs):
            train_loss = self.train_epoch(train_loader)
            val_loss = self.validate(val_loader)
            print(f"epoch {epoch} loss {train_loss:.5f} val {val_loss:.5f}")
            if val_loss < self.best_loss:
                self.best_loss = val_loss
                self.best_model_dict = self.model.state_dict()
        self.model.load_state_dict(self.best_model_dict)
        self.model.eval()


def main():
    torch.manual_seed(SEED)
    train_loader = DataLoader(series(16), batch_size=16, shuffle=True)
    val_loader, test_loader = DataLoader(series(32), batch_size=32), DataLoader(series(32), batch_size=32)
    trainer = Trainer(Imputer(), lr=0.05)
    trainer.fit(train_loader, val_loader, epochs=STEPS)
    print(f"best val {trainer.best_loss:.5f} again {trainer.validate(val_loader):.5f}")
    print(f"test {trainer.validate(test_loader):.5f}")


if __name__ == "__main__":
    main()
