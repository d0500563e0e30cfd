"""What tensor parallelism cuts: columns, rows, the vocabulary. Weights are drawn whole, by name, and cut."""
import zlib

import torch
import torch.nn.functional as F
from regions import Reduce, leave
from torch import nn


def draw(name, *shape):
    value = 0.1 * torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode())))
    return value + 1 if name.endswith("gain") else value


def parameter(name, group=None, dim=None, *, shape):
    """cut: each rank of the group has a part. Else each has the whole."""
    whole = draw(name, *shape)
    p = nn.Parameter(whole if dim is None else group.mine(whole, dim).clone().contiguous())
    p.cut = dim is not None and group.size > 1
    return p


class Norm(nn.Module):
    def __init__(self, name, dim):
        super().__init__()
        self.gain = parameter(f"{name}.gain", shape=(dim,))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.gain


class Column(nn.Module):
    """Each rank has some of the outputs."""
    def __init__(self, name, inputs, outputs, tp):
        super().__init__()
        self.weight = parameter(f"{name}.weight", tp, 0, shape=(outputs, inputs))

    def forward(self, x):
        return F.linear(x, self.weight)


class Row(nn.Module):
    """Each rank has some of the inputs; the bias is added once, to the sum."""
    def __init__(self, name, inputs, outputs, tp, sequence):
        super().__init__()
        self.tp, self.sequence = tp, sequence
        self.weight = parameter(f"{name}.weight", tp, 1, shape=(outputs, inputs))
        self.bias = parameter(f"{name}.bias", shape=(outputs,))

    def forward(self, x):
        partial = F.linear(x, self.weight)
        whole = leave(partial, self.tp, self.sequence)
        return whole + self.bias


class Embedding(nn.Module):
    """Each rank has some of the words."""
    def __init__(self, name, words, dim, tp, sequence):
        super().__init__()
        self.tp, self.sequence, self.first = tp, sequence, words // tp.size * tp.rank
        self.weight = parameter(f"{name}.weight", tp, 0, shape=(words, dim))

    def forward(self, tokens):
        local = tokens - self.first
        known = (local >= 0) & (local < self.weight.shape[0])
        found = F.embedding(local.clamp(0, self.weight.shape[0] - 1), self.weight)
        found = found * known[..., None]
        return leave(found, self.tp, self.sequence)


def cross_entropy(logits, labels, tp):
    """The mean over the tokens, of logits whose words are cut."""
    top = tp.max(logits.detach().amax(-1))
    shifted = logits - top[..., None]
    total = shifted.exp().sum(-1)
    local = labels - logits.shape[-1] * tp.rank
    known = (local >= 0) & (local < logits.shape[-1])
    right = shifted.gather(-1, local.clamp(0, logits.shape[-1] - 1)[..., None])[..., 0] * known
    if tp.size > 1:
        total = Reduce.apply(total, tp)
        right = Reduce.apply(right, tp)
    return (total.log() - right).mean()
