"""A small image classifier with a runner, hooks and an exponential moving average used for validation."""
import os

import torch
from ema_hook import EMAHook
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Runner:
    def __init__(self, model, train_loader, val_loader, max_epochs):
        self.model, self.train_loader, self.val_loader, self.max_epochs = model, train_loader, val_loader, max_epochs
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, max_epochs)
        self.hooks = []

    def call_hook(self, name):
        for hook in self.hooks:
            getattr(hook, name)()

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.call_hook("after_train_iter")
            total += loss.item()
        self.scheduler.step()
        return total / len(self.train_loader)

    def val_epoch(self):
        self.call_hook("before_val_epoch")
        self.model.eval()
        with torch.no_grad():
            right = sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.val_loader)
        self.call_hook("after_val_epoch")
        return right / len(self.val_loader.dataset)

    def run(self):
        for epoch in range(1, self.max_epochs + 1):
            loss = self.train_epoch()
            accuracy = self.val_epoch()
            print(f"Epoch({epoch}) loss: {loss:.5f} accuracy: {accuracy:.3f}")


def images(n, generator):
    y = torch.randint(0, 4, (n,), generator=generator)
    x = torch.randn(n, 1, 8, 8, generator=generator)
    for i, k in enumerate(y.tolist()):
        x[i, 0, 4 * (k // 2) : 4 * (k // 2) + 4, 4 * (k % 2) : 4 * (k % 2) + 4] += 1.0
    return TensorDataset(x, y)


def main():
    torch.manual_seed(SEED)
    generator = torch.Generator().manual_seed(SEED)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 4)
    )
    train_loader = DataLoader(images(64, generator), batch_size=16, shuffle=True)
    val_loader = DataLoader(images(48, generator), batch_size=24)
    runner = Runner(model, train_loader, val_loader, max_epochs=max(2, STEPS // len(train_loader)))
    runner.hooks.append(EMAHook(model))
    runner.run()


if __name__ == "__main__":
    main()
