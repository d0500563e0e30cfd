"""A transformer of one layer: attention by hand, a mask, LayerNorm, GELU, dropout, AdamW, two micro-batches a step."""

import math

import torch
import torch.nn.functional as F
from ending import arguments, tell_loss, tell_model
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = (part.view(batch, time, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(width, dim=2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        mask = torch.ones(time, time, dtype=torch.bool).tril()
        weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, time, width))


class Model(nn.Module):
    def __init__(self, words=31, width=16, time=8):
        super().__init__()
        self.tokens, self.places = nn.Embedding(words, width), nn.Embedding(time, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, 2)
        self.up, self.down, self.head = nn.Linear(width, 2 * width), nn.Linear(2 * width, width), nn.Linear(width, words)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.size(1)))
        x = x + self.attention(self.norm1(x))
        x = x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), 0.1, self.training)
        return self.head(x)


def main():
    options = arguments()
    model = Model()
    run = torch.compile(model, backend=options.compile) if options.compile else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(options.steps):
        optimizer.zero_grad()
        for _ in range(2):
            ids = torch.randint(0, 31, (4, 9))
            logits = run(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()) / 2
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        tell_loss(step, loss)
    tell_model(model, optimizer)


if __name__ == "__main__":
    main()
