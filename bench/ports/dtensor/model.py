"""A small decoder with learned positions and a tied head. What it holds may be plain tensors or DTensors; its code is the same."""
import zlib

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.tensor import DTensor, Partial

VOCAB, DIM, HEADS, HIDDEN, LAYERS, LENGTH = 96, 48, 4, 96, 2, 16


def local(p):
    """A rank's part of a parameter. Where all ranks hold the whole, each uses it for its own part of the work: their gradients are summands."""
    if not isinstance(p, DTensor):
        return p
    return p.to_local(grad_placements=[Partial() if q.is_replicate() else q for q in p.placements])


class Places(nn.Module):
    """Adds a learned row to each position. Under sequence parallelism x is part number `part` of the sequence."""
    part = 0

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(LENGTH, DIM))

    def forward(self, x):
        first = self.part * x.shape[1]
        rows = local(self.weight)[first : first + x.shape[1]]
        return x + rows


class Attention(nn.Module):
    """Of all positions; of as many heads as the projections make here."""
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(DIM, DIM, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (-1, DIM // HEADS)).transpose(1, 2) for f in (self.query, self.key, self.value))
        scores = q @ k.mT * (DIM // HEADS) ** -0.5
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Parameter(torch.zeros(HIDDEN, DIM)), nn.Parameter(torch.zeros(DIM, HIDDEN))

    def forward(self, x):
        hidden = F.gelu(F.linear(x, local(self.up)))
        return F.linear(hidden, local(self.down))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention, self.norm2, self.ffn = nn.LayerNorm(DIM), Attention(), nn.LayerNorm(DIM), FeedForward()

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.ffn(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB, DIM), Places()
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.heat = nn.LayerNorm(DIM), nn.Parameter(torch.ones(()))
        self.head = nn.Linear(DIM, VOCAB, bias=False)
        self.tie()
        with torch.no_grad():
            for name, p in self.named_parameters():
                draw = torch.randn(p.shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
                p.copy_(("norm" in name and "weight" in name or name == "heat") + draw * (0.3 if "query" in name or "key" in name else 0.12))

    def tie(self):
        self.head.weight = self.words.weight

    def forward(self, tokens):
        x = self.places(self.words(tokens))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x) * local(self.heat))
