import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.each = nn.ModuleList(nn.Linear(d, d) for _ in range(n))

    def forward(self, x, weight):
        return sum(weight[..., i : i + 1] * torch.relu(e(x)) for i, e in enumerate(self.each))


class SparseLm(nn.Module):
    def __init__(self, vocab=18, d=12, n=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.router = nn.Linear(d, n)
        self.experts = Experts(d, n)
        self.lm_head = nn.Linear(d, vocab)

    def forward(self, ids):
        x = self.embed(ids)
        return self.lm_head(x + self.experts(x, self.router(x).softmax(-1)))
