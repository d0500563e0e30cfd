"""A small decoder whose parts exist twice: as formulas, and as the fused or lower forms that --bf16, --sdpa, --compile ask for."""
import zlib

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, DIM, HEADS, HIDDEN, LAYERS = 96, 64, 4, 128, 2


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(DIM))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.weight


def rotation(length, head, dtype):
    """cos and sin of every position, computed in float32 whatever the model's type."""
    place = torch.arange(length, dtype=torch.float32)
    angles = torch.outer(place, 10000.0 ** (-torch.arange(head // 2) / (head // 2)))
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def formula(q, k, v):
    length = q.shape[-2]
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    scores = scores.masked_fill(later, float("-inf"))
    return F.softmax(scores.float(), dim=-1).to(v.dtype) @ v


def fused(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Attention(nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.attend = attend
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM, bias=False), nn.Linear(DIM, DIM, bias=False)

    def forward(self, x, cos, sin):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = self.attend(rotate(q, cos, sin), rotate(k, cos, sin), v)
        return self.out(mixed.transpose(1, 2).reshape(b, t, DIM))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(DIM, HIDDEN, bias=False), nn.Linear(DIM, HIDDEN, bias=False), nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.norm1, self.attention, self.norm2, self.ffn = Norm(), Attention(attend), Norm(), FeedForward()

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm1(x), cos, sin)
        return x + self.ffn(self.norm2(x))


class Model(nn.Module):
    def __init__(self, attend=formula):
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM)
        self.blocks = nn.ModuleList(Block(attend) for _ in range(LAYERS))
        self.norm, self.head = Norm(), nn.Linear(DIM, VOCAB, bias=False)
        with torch.no_grad():
            for name, p in self.named_parameters():
                size = 0.4 if "qkv" in name else 0.1
                p.copy_(("norm" in name) + size * torch.randn(p.shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode()))))

    def forward(self, tokens):
        x = self.words(tokens)
        cos, sin = rotation(tokens.shape[1], DIM // HEADS, x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))
