"""What both programs train: a small decoder, and the documents. Documents lie end to end in a row: `places` start anew in each, `mask` says who sees whom."""
import zlib

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, DIM, HEADS, HIDDEN, LAYERS, LONGEST = 80, 40, 4, 80, 2, 14


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.qkv, self.out = nn.LayerNorm(DIM), nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.norm2, self.up, self.down = nn.LayerNorm(DIM), nn.Linear(DIM, HIDDEN), nn.Linear(HIDDEN, DIM)

    def forward(self, x, mask):
        q, k, v = self.qkv(self.norm1(x)).view(-1, 3, HEADS, DIM // HEADS).permute(1, 2, 0, 3)
        scores = (q @ k.mT * (DIM // HEADS) ** -0.5).masked_fill(~mask, float("-inf"))
        x = x + self.out((scores.softmax(-1) @ v).transpose(0, 1).flatten(1))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.where = nn.Embedding(VOCAB, DIM), nn.Embedding(LONGEST, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, VOCAB, bias=False)
        with torch.no_grad():
            for name, p in self.named_parameters():
                draw = torch.randn(p.shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
                p.copy_(("norm" in name and "weight" in name) + draw * (0.3 if "qkv" in name else 0.15))

    def forward(self, words, places, mask):
        x = self.words(words) + self.where(places)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))


def documents(step):
    """Seven documents of different lengths."""
    g = torch.Generator().manual_seed(500 + step)
    lengths = torch.randint(5, LONGEST + 1, (7,), generator=g).tolist()
    return [torch.randint(0, VOCAB, (length,), generator=g) for length in lengths]
