import math

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def timestep_embedding(t, width):
    speed = torch.exp(-math.log(1000.0) * torch.arange(width // 2) / (width // 2))
    angle = t[:, None].float() * speed[None]
    return torch.cat([angle.cos(), angle.sin()], 1)


class ResBlock(nn.Module):
    def __init__(self, width, embedding, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, width), nn.GroupNorm(4, width)
        self.conv1 = nn.Conv1d(width, width, 3, padding=1)
        self.time = nn.Linear(embedding, width)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = nn.Conv1d(width, width, 3, padding=1)

    def forward(self, x, emb):
        h = self.conv1(nn.functional.silu(self.norm1(x))) + self.time(emb)[:, :, None]
        h = self.dropout(nn.functional.silu(self.norm2(h)))
        return x + self.conv2(h)


class Denoiser(nn.Module):
    """Predicts the noise in a signal. The activations of its blocks are not kept but computed anew."""

    def __init__(self, channels=2, width=16, depth=3, dropout=0.1):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU())
        self.enter = nn.Conv1d(channels, width, 3, padding=1)
        self.blocks = nn.ModuleList(ResBlock(width, width, dropout) for _ in range(depth))
        self.leave = nn.Conv1d(width, channels, 3, padding=1)

    def forward(self, x, t):
        emb = self.time(timestep_embedding(t, self.width))
        h = self.enter(x)
        for block in self.blocks:
            if self.training:
                h = checkpoint(block, h, emb, use_reentrant=False)
            else:
                h = block(h, emb)
        return self.leave(h)
