"""A convolutional autoencoder with residual stacks, trained to remove noise from images of discs."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Residual(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.block = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(channels, hidden, 3, padding=1, bias=False),
            nn.ReLU(),
            nn.Conv2d(hidden, channels, 1, bias=False),
        )

    def forward(self, x):
        return x + self.block(x)


class ResidualStack(nn.Module):
    def __init__(self, channels, n_layers, hidden):
        super().__init__()
        self.layers = nn.ModuleList([Residual(channels, hidden) for _ in range(n_layers)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return F.relu(x)


class AutoEncoder(nn.Module):
    def __init__(self, channels=12, n_layers=3, hidden=6):
        super().__init__()
        self.down = nn.Conv2d(1, channels, 4, stride=2, padding=1)
        self.encoder = ResidualStack(channels, n_layers, hidden)
        self.decoder = ResidualStack(channels, n_layers, hidden)
        self.up = nn.ConvTranspose2d(channels, 1, 4, stride=2, padding=1)

    def forward(self, x):
        return self.up(self.decoder(self.encoder(self.down(x))))


def discs(n, side=12):
    grid = torch.arange(side).float()
    center = torch.rand(n, 2) * side
    radius = 2 + 3 * torch.rand(n)
    away = (grid[None, :, None] - center[:, 0, None, None]) ** 2 + (grid[None, None] - center[:, 1, None, None]) ** 2
    return (away < radius[:, None, None] ** 2).float().unsqueeze(1)


def train_step(model, optimizer, clean):
    optimizer.zero_grad()
    loss = F.mse_loss(model(clean + 0.3 * torch.randn_like(clean)), clean)
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(SEED)
    model = AutoEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    model.train()
    errors = []
    for step in range(1, STEPS + 1):
        errors.append(train_step(model, optimizer, discs(32)))
        print(f"{step} iterations, reconstruction error {errors[-1]:.5f}, mean {sum(errors) / len(errors):.5f}")


if __name__ == "__main__":
    main()
