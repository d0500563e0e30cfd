"""Attention with one head of keys and values for all queries. Under context parallelism it goes block by block."""
import torch
from layers import Column, Row, parameter
from regions import enter
from torch import nn


class GatherBlocks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return group.gather(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return ctx.group.mine(ctx.group.sum(grad.clone()), 1).contiguous(), None


def rotate(x, places):
    half = x.shape[-1] // 2
    angles = places[:, None].float() * 10000.0 ** (-torch.arange(half) / half)
    cos, sin = angles.cos()[None, :, None], angles.sin()[None, :, None]
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def block(q, k, v, seen):
    """(largest score, sum of exponentials, their mixture of v) of each query over one block of keys."""
    scores = torch.einsum("bqhd,bkd->bhqk", q, k) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~seen, -1e30)
    top = scores.amax(-1).detach()
    weights = (scores - top[..., None]).exp() * seen
    return top, weights.sum(-1), torch.einsum("bhqk,bkd->bhqd", weights, v)


def merge(old, new):
    top = torch.maximum(old[0], new[0])
    before, after = (old[0] - top).exp(), (new[0] - top).exp()
    total = old[1] * before + new[1] * after
    mixed = old[2] * before[..., None] + new[2] * after[..., None]
    return top, total, mixed


class Attention(nn.Module):
    def __init__(self, name, dim, heads, groups, sequence):
        super().__init__()
        self.tp, self.cp, self.sequence = groups["tp"], groups["cp"], sequence
        self.head = dim // heads
        self.query = Column(f"{name}.query", dim, dim, self.tp)
        # One head for all ranks' queries: each rank has the whole, and the gradient of its own queries only.
        self.pair = parameter(f"{name}.pair", shape=(2 * self.head, dim))
        self.pair.partial = True
        self.out = Row(f"{name}.out", dim, dim, self.tp, sequence)

    def forward(self, x, places):
        x = enter(x, self.tp, self.sequence)
        b, s, _ = x.shape
        q = rotate(self.query(x).view(b, s, -1, self.head), places)
        k, v = (x @ self.pair.t()).chunk(2, -1)
        k = rotate(k[:, :, None], places)[:, :, 0]
        keys = places
        if self.cp.size > 1:
            k, v, keys = GatherBlocks.apply(k, self.cp), GatherBlocks.apply(v, self.cp), self.cp.gather(places, 0)
        state = None
        for part, values, where in zip(k.chunk(self.cp.size, 1), v.chunk(self.cp.size, 1), keys.chunk(self.cp.size)):
            found = block(q, part, values, places[:, None] >= where)
            state = found if state is None else merge(state, found)
        mixed = state[2] / state[1][..., None]
        return self.out(mixed.transpose(1, 2).reshape(b, s, -1))
