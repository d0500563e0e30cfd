"""A GPT-2-like training step: fused QKV causal attention, LayerNorm, GELU MLP, tied head, AdamW. What bench/overhead.py measures."""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZES = {  # layers, width, heads, vocabulary, batch, sequence
    "small": (4, 256, 4, 4096, 4, 128),
    "large": (6, 768, 12, 8192, 4, 128),
    "tiny": (2, 64, 2, 512, 2, 32),
}


class Attention(nn.Module):
    def __init__(self, width, heads, sequence):
        super().__init__()
        self.width, self.heads = width, heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(sequence, sequence, dtype=torch.bool)))

    def forward(self, x):
        b, t, d = x.shape
        h = self.heads
        q, k, v = self.qkv(x).split(d, dim=2)
        q = q.view(b, t, h, d // h).transpose(1, 2)
        k = k.view(b, t, h, d // h).transpose(1, 2)
        v = v.view(b, t, h, d // h).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * ((d // h) ** -0.5)
        att = att.masked_fill(~self.mask[:t, :t], float("-inf"))
        att = F.softmax(att, dim=-1)
        y = (att @ v).transpose(1, 2).contiguous().view(b, t, d)
        return self.proj(y)


class Block(nn.Module):
    def __init__(self, width, heads, sequence):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads, sequence)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, size):
        super().__init__()
        layers, width, heads, vocabulary, _, sequence = SIZES[size]
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(sequence, width)
        self.blocks = nn.ModuleList([Block(width, heads, sequence) for _ in range(layers)])
        self.lnf = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, idx, tgt):
        pos = torch.arange(idx.shape[1])
        x = self.wte(idx) + self.wpe(pos)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.lnf(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), tgt.view(-1))


def build(size):
    """(model, optimizer, idx, tgt)"""
    _, _, _, vocabulary, batch, sequence = SIZES[size]
    torch.manual_seed(0)
    model = GPT(size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    idx = torch.randint(0, vocabulary, (batch, sequence))
    tgt = torch.randint(0, vocabulary, (batch, sequence))
    return model, optimizer, idx, tgt


def step(model, optimizer, idx, tgt):
    optimizer.zero_grad(set_to_none=True)
    loss = model(idx, tgt)
    loss.backward()
    optimizer.step()
    return loss


if __name__ == "__main__":
    state = build(sys.argv[1])
    for _ in range(2):
        print("loss", step(*state).item())
