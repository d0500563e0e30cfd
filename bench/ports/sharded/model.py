"""A small gated decoder. Queries and keys are normalised head by head; one matrix makes both gate and up; rare words weigh more in the loss."""
import zlib

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, DIM, HEADS, HEAD, HIDDEN, LAYERS, LENGTH = 96, 48, 4, 12, 80, 3, 16


def angles():
    """cos and sin of the rotation, for every position and every pair of a head's numbers."""
    turn = torch.outer(torch.arange(LENGTH).float(), 100.0 ** (-torch.arange(HEAD // 2) / (HEAD // 2)))
    return turn.cos()[:, None], turn.sin()[:, None]


def rotate(x, cos, sin):
    a, b = x.unflatten(-1, (2, -1)).unbind(-2)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)


class Attention(nn.Module):
    """Of all positions, and of as many heads as the projections make here."""
    def __init__(self):
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(DIM, DIM, bias=False) for _ in range(4))
        self.q_norm, self.k_norm = nn.RMSNorm(HEAD, eps=1e-5), nn.RMSNorm(HEAD, eps=1e-5)

    def forward(self, x, cos, sin):
        q, k, v = (f(x).unflatten(-1, (-1, HEAD)) for f in (self.wq, self.wk, self.wv))
        q, k = rotate(self.q_norm(q), cos, sin), rotate(self.k_norm(k), cos, sin)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(mixed.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """The first half of gate_up's rows are the gate's."""
    def __init__(self):
        super().__init__()
        self.gate_up, self.down = nn.Linear(DIM, 2 * HIDDEN, bias=False), nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x):
        gate, up = self.gate_up(x).chunk(2, -1)
        return self.down(F.silu(gate) * up)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention = nn.RMSNorm(DIM, eps=1e-5), Attention()
        self.norm2, self.ffn = nn.RMSNorm(DIM, eps=1e-5), FeedForward()

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm1(x), cos, sin)
        return x + self.ffn(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(DIM, eps=1e-5), nn.Linear(DIM, VOCAB, bias=False)
        self.register_buffer("seen", torch.zeros(VOCAB))  # how often each word was said in the steps before
        self.cos, self.sin = angles()
        with torch.no_grad():
            for name, p in self.named_parameters():
                draw = torch.randn(p.shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
                p.copy_(("norm" in name) + 0.15 * draw)

    def forward(self, tokens):
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return self.head(self.norm(x))
