import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1), nn.PReLU(), nn.Conv2d(width, width, 3, padding=1)
        )

    def forward(self, x):
        return x + self.body(x)


class Generator(nn.Module):
    """A small picture to one of twice the height and width."""

    def __init__(self, width=16, depth=2):
        super().__init__()
        self.enter = nn.Sequential(nn.Conv2d(1, width, 5, padding=2), nn.PReLU())
        self.trunk = nn.Sequential(*(Residual(width) for _ in range(depth)))
        self.upsample = nn.Sequential(nn.Conv2d(width, 4 * width, 3, padding=1), nn.PixelShuffle(2), nn.PReLU())
        self.leave = nn.Conv2d(width, 1, 5, padding=2)

    def forward(self, x):
        x = self.enter(x)
        return self.leave(self.upsample(x + self.trunk(x)))


class Discriminator(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.LeakyReLU(0.2),
        )
        self.classifier = nn.Linear(2 * width, 1)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


def blur_down(x):
    """The small picture that belongs to a large one."""
    return torch.nn.functional.avg_pool2d(x, 2)
