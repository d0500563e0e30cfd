"""Layers of a tensor parallel transformer: what is split over the ranks, and what every rank has whole."""

import torch
import torch.distributed as dist
from torch import nn


class EnterParallel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


class LeaveParallel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class ParallelMLP(nn.Module):
    """This rank's part of the hidden units: some columns of the first matrix, the same rows of the second."""

    def __init__(self, width, hidden):
        super().__init__()
        rank, world = dist.get_rank(), dist.get_world_size()
        up, down = nn.Linear(width, hidden, bias=False), nn.Linear(hidden, width, bias=False)
        self.up = nn.Parameter(up.weight.detach().chunk(world, 0)[rank].clone())
        self.down = nn.Parameter(down.weight.detach().chunk(world, 1)[rank].clone())
        for weight in (self.up, self.down):
            weight.tensor_model_parallel = True

    def forward(self, x):
        h = nn.functional.gelu(EnterParallel.apply(x) @ self.up.T)
        return LeaveParallel.apply(h @ self.down.T)


class Block(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = ParallelMLP(width, 4 * width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.dropout(self.mlp(self.norm(x)))


class Model(nn.Module):
    def __init__(self, vocabulary, context=4, width=16, depth=2, dropout=0.1):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.mix = nn.Linear(context * width, width)
        self.blocks = nn.ModuleList(Block(width, dropout) for _ in range(depth))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.mix(self.embedding(tokens).flatten(1))
        for block in self.blocks:
            x = block(x)
        return self.head(x)
