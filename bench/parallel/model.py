"""A decoder of which a rank builds the layers of its pipeline stage."""
import torch
import torch.nn.functional as F
from attention import Attention
from experts import Experts
from layers import Column, Embedding, Norm, Row, cross_entropy
from regions import enter
from torch import nn
from torch.utils.checkpoint import checkpoint

VOCAB, DIM, HEADS, HIDDEN, LAYERS, EXPERTS = 96, 48, 4, 96, 4, 4


class FeedForward(nn.Module):
    def __init__(self, name, tp, sequence):
        super().__init__()
        self.tp, self.sequence = tp, sequence
        self.up, self.down = Column(f"{name}.up", DIM, HIDDEN, tp), Row(f"{name}.down", HIDDEN, DIM, tp, sequence)

    def forward(self, x):
        x = enter(x, self.tp, self.sequence)
        return self.down(F.silu(self.up(x)))


class Layer(nn.Module):
    def __init__(self, number, groups, o):
        super().__init__()
        name = f"layers.{number}"
        self.norm1, self.attention = Norm(f"{name}.norm1", DIM), Attention(f"{name}.attention", DIM, HEADS, groups, o.sp)
        self.norm2 = Norm(f"{name}.norm2", DIM)
        if o.moe and number % 2:
            self.ffn = Experts(f"{name}.ffn", DIM, HIDDEN, EXPERTS, groups["dp"])
        else:
            self.ffn = FeedForward(f"{name}.ffn", groups["tp"], o.sp)

    def forward(self, x, places):
        x = x + self.attention(self.norm1(x), places)
        return x + self.ffn(self.norm2(x))


def stage_layers(pp, in_first):
    """The numbers of a stage's layers: as many in each, or `in_first` in the first and as many in each of the others."""
    if pp.size == 1 or not in_first:
        each = LAYERS // pp.size
        return range(each * pp.rank, each * (pp.rank + 1))
    each, left = divmod(LAYERS - in_first, pp.size - 1)
    if in_first < 0 or left or each < 1:
        raise ValueError(f"{LAYERS} layers, {in_first} of them in the first of {pp.size} stages: the others cannot have as many each")
    start = in_first + each * (pp.rank - 1)
    return range(in_first) if pp.rank == 0 else range(start, start + each)


class Model(nn.Module):
    def __init__(self, groups, o):
        super().__init__()
        self.tp, self.sequence, self.checkpoint = groups["tp"], o.sp, o.checkpoint
        pp = groups["pp"]
        self.words = Embedding("words", VOCAB, DIM, self.tp, o.sp) if pp.rank == 0 else None
        self.layers = nn.ModuleList(Layer(number, groups, o) for number in stage_layers(pp, o.in_first))
        self.last = pp.rank == pp.size - 1
        if self.last:
            self.norm, self.head = Norm("norm", DIM), Column("head", DIM, VOCAB, self.tp)

    def forward(self, x, places):
        """Of tokens in the first stage, of what the stage before made in others."""
        if self.words is not None:
            x = self.words(x)
        for layer in self.layers:
            # With --checkpoint backward makes the activations of a layer once more.
            x = checkpoint(layer, x, places, use_reentrant=False) if self.checkpoint else layer(x, places)
        if not self.last:
            return x
        return self.head(enter(self.norm(x), self.tp, self.sequence))


def loss_of(logits, labels, tp):
    return cross_entropy(logits, labels, tp)


def shape_between(batch, length, groups, o):
    return (batch, length // groups["tp"].size if o.sp else length, DIM), torch.float32
