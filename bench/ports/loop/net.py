"""What both programs train: a small classifier of images, which mixes patches by one matrix and channels by two; and the images."""
import zlib

import torch
import torch.nn.functional as F
from recipe import BATCH, CLASSES
from torch import nn

SIDE, PATCH, DIM, WIDE, BLOCKS = 12, 3, 32, 64, 3
PLACES = (SIDE // PATCH) ** 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.across = nn.LayerNorm(DIM), nn.Linear(PLACES, PLACES)
        self.norm2, self.up, self.down = nn.LayerNorm(DIM), nn.Linear(DIM, WIDE), nn.Linear(WIDE, DIM)

    def forward(self, x):
        x = x + self.across(self.norm1(x).mT).mT
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cut = nn.Conv2d(3, DIM, PATCH, PATCH)
        self.places = nn.Parameter(torch.zeros(1, PLACES, DIM))
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, CLASSES)
        with torch.no_grad():
            for name, p in self.named_parameters():
                draw = torch.randn(p.shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
                p.copy_(("norm" in name and "weight" in name) + 0.2 * draw)

    def forward(self, images):
        x = self.cut(images).flatten(2).mT + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


def depth(name):
    """0 for what meets the image first, one more for each block, and so on to the head."""
    if name.startswith("blocks."):
        return int(name.split(".")[1]) + 1
    return 0 if name.startswith(("cut", "places")) else BLOCKS + 1


def batch(number):
    """Images that show their class, weakly: each has some of one pattern."""
    g = torch.Generator().manual_seed(8800 + number)
    labels = torch.randint(0, CLASSES, (BATCH,), generator=g)
    patterns = torch.randn(CLASSES, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(88))
    return torch.randn(BATCH, 3, SIDE, SIDE, generator=g) + patterns[labels], labels
