"""A decoder with experts of limited room. In several processes each has some of the experts, and rows go to them and back by all_to_all."""
import zlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

VOCAB, DIM, HEADS, HIDDEN, LAYERS, EXPERTS, CHOSEN, ROOM = 64, 32, 4, 48, 2, 4, 2, 14  # ROOM: rows of one micro-batch that an expert takes


def ranks():
    return dist.get_world_size() if dist.is_initialized() else 1


def rank():
    return dist.get_rank() if dist.is_initialized() else 0


class Exchange(torch.autograd.Function):
    """The n-th part of dimension 0 goes to the n-th rank, and from there comes the n-th part of what is made."""
    @staticmethod
    def forward(ctx, x):
        made = torch.empty_like(x)
        dist.all_to_all_single(made, x.contiguous())
        return made

    @staticmethod
    def backward(ctx, grad):
        return Exchange.forward(ctx, grad)


def exchange(x):
    return Exchange.apply(x) if ranks() > 1 else x


def draw(name, *shape):
    return nn.Parameter(0.2 * torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode()))))


class Attention(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.qkv, self.out = draw(f"{name}.qkv", 3 * DIM, DIM), draw(f"{name}.out", DIM, DIM)

    def forward(self, x):
        q, k, v = F.linear(x, self.qkv).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = (q @ k.mT * (DIM // HEADS) ** -0.5).masked_fill(later, float("-inf"))
        return F.linear((scores.softmax(-1) @ v).transpose(1, 2).flatten(2), self.out)


class Router(nn.Module):
    """Experts with the best scores, to which a bias is added that evens out their load: it has no gradient, and grows where rows were few."""
    def __init__(self, name):
        super().__init__()
        self.weight = draw(f"{name}.weight", EXPERTS, DIM)
        self.register_buffer("bias", torch.zeros(EXPERTS))
        self.register_buffer("load", torch.zeros(EXPERTS))

    def forward(self, rows):
        scores = F.linear(rows, self.weight).sigmoid()
        chosen = (scores + self.bias).topk(CHOSEN, dim=-1).indices
        self.load += chosen.flatten().bincount(minlength=EXPERTS)
        weights = scores.gather(-1, chosen)
        return weights / weights.sum(-1, keepdim=True), chosen

    def even_out(self):
        """Once a step, from the rows of all ranks."""
        if ranks() > 1:
            dist.all_reduce(self.load)
        self.bias += 0.05 * torch.sign(self.load.mean() - self.load)
        self.load.zero_()


class Experts(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.here = EXPERTS // ranks()
        mine = range(rank() * self.here, (rank() + 1) * self.here)
        self.up = nn.Parameter(torch.stack([draw(f"{name}.up.{i}", DIM, HIDDEN) for i in mine]).detach())
        self.down = nn.Parameter(torch.stack([draw(f"{name}.down.{i}", HIDDEN, DIM) for i in mine]).detach())
        self.up.own = self.down.own = True  # not a copy of what the other ranks have
        self.router = Router(f"{name}.router")
        self.shared_up, self.shared_down = draw(f"{name}.shared_up", HIDDEN, DIM), draw(f"{name}.shared_down", DIM, HIDDEN)

    def forward(self, x):
        rows = x.flatten(0, 1)
        weights, chosen = self.router(rows)
        slot = self.slots(chosen)
        filled = rows.new_zeros(EXPERTS * ROOM + 1, DIM).index_add(0, slot, rows.repeat_interleave(CHOSEN, 0))
        made = self.distributed(filled[:-1])
        back = torch.cat((made, made.new_zeros(1, DIM)))[slot].view(-1, CHOSEN, DIM)
        shared = F.linear(F.gelu(F.linear(rows, self.shared_up)), self.shared_down)
        return ((back * weights[..., None]).sum(1) + shared).view_as(x)

    @staticmethod
    def slots(chosen):
        """Where each copy of a row goes: ROOM slots for each expert, first come, first served; one behind all for those that find no room."""
        wanted = F.one_hot(chosen.flatten(), EXPERTS)
        place = ((wanted.cumsum(0) - 1) * wanted).sum(-1)
        return torch.where(place < ROOM, chosen.flatten() * ROOM + place, EXPERTS * ROOM)

    def distributed(self, filled):
        """What the experts make of their slots, wherever they are."""
        arrived = exchange(filled.view(ranks(), self.here * ROOM, DIM))
        by_expert = arrived.view(ranks(), self.here, ROOM, DIM).transpose(0, 1).reshape(self.here, ranks() * ROOM, DIM)
        made = torch.bmm(F.gelu(torch.bmm(by_expert, self.up)), self.down)
        by_rank = made.view(self.here, ranks(), ROOM, DIM).transpose(0, 1).reshape(ranks(), self.here * ROOM, DIM)
        return exchange(by_rank).view(EXPERTS * ROOM, DIM)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = draw("words", VOCAB, DIM), draw("head", VOCAB, DIM)
        self.attention = nn.ModuleList(Attention(f"attention.{i}") for i in range(LAYERS))
        self.experts = nn.ModuleList(Experts(f"experts.{i}") for i in range(LAYERS))
        self.norms = nn.ModuleList(nn.RMSNorm(DIM, eps=1e-5) for _ in range(2 * LAYERS + 1))

    def forward(self, words):
        x = F.embedding(words, self.words)
        for i in range(LAYERS):
            x = x + self.attention[i](self.norms[2 * i](x))
            x = x + self.experts[i](self.norms[2 * i + 1](x))
        return F.linear(self.norms[-1](x), self.head)
