"""Pairs of functions and modules that differ by one known operator, written before opguard.testing was tried on any of them.

`# pivot` marks the statements of a pair in which the two part: the first whose result the other side does not hold though it has
what the statement reads. Each of PAIRS gives (a, b, arguments)."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

PAIRS = {}


def pair(make):
    PAIRS[make.__name__] = make
    return make


def seeded(*shapes, seed=11):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=generator) for shape in shapes]


@pair
def attention_scale():
    def a(q, k, v):
        scores = q @ k.transpose(-2, -1)
        scores = scores * 24**-0.5  # pivot
        scores = scores.masked_fill(torch.ones(9, 9).triu(1).bool(), float("-inf"))
        return scores.softmax(-1) @ v

    def b(q, k, v):
        q = q * 24**-0.5  # pivot
        scores = q @ k.transpose(-2, -1)
        hidden = torch.triu(torch.ones(9, 9), diagonal=1) == 1
        return F.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1) @ v

    return a, b, [t.requires_grad_() for t in seeded((2, 3, 9, 24), (2, 3, 9, 24), (2, 3, 9, 24))]


@pair
def rms_norm_cast():
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.linspace(0.5, 1.5, 32))

    class Late(Norm):
        def forward(self, x):
            wide = x.float()
            wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
            return (wide * self.weight).to(x.dtype)  # pivot

    class Early(Norm):
        def forward(self, x):
            wide = x.float()
            scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
            return (self.weight * (wide * scale).to(x.dtype)).to(x.dtype)  # pivot

    return Late(), Early(), [seeded((4, 7, 32))[0].bfloat16().requires_grad_()]


@pair
def rope_pairs():
    angles = torch.outer(torch.arange(8.0), 10000 ** -(torch.arange(0, 16, 2) / 16))

    def halves(x):
        cos, sin = angles.cos(), angles.sin()
        first, second = x.chunk(2, dim=-1)  # pivot
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)

    def neighbours(x):
        cos, sin = torch.cos(angles), torch.sin(angles)
        even, odd = x[..., ::2], x[..., 1::2]  # pivot
        return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)

    return halves, neighbours, [seeded((2, 4, 8, 16))[0].requires_grad_()]


@pair
def loss_denominator():
    def reference(logits, labels):
        shifted, targets = logits[:, :-1], labels[:, 1:]
        return F.cross_entropy(shifted.reshape(-1, 20), targets.reshape(-1), ignore_index=-100)  # pivot

    def per_token(logits, labels):
        shifted, targets = logits[:, :-1].reshape(-1, 20), labels[:, 1:].reshape(-1)
        losses = F.cross_entropy(shifted, targets, ignore_index=-100, reduction="none")  # pivot
        return losses.sum() / targets.numel()

    labels = torch.arange(24).reshape(3, 8) % 20
    labels[:, :4] = -100
    return reference, per_token, [seeded((3, 8, 20))[0].requires_grad_(), labels]


def trainer(update):
    (weight,) = seeded((12, 5), seed=3)
    state = {"weight": weight, "momentum": torch.zeros(12, 5)}

    def train(x, y):
        for _ in range(3):
            weight = state["weight"].clone().requires_grad_()
            loss = F.mse_loss(x @ weight, y)
            (grad,) = torch.autograd.grad(loss, weight)
            update(state, grad)
        return state["weight"]

    return train


@pair
def sgd_decay():
    def coupled(state, grad):
        grad = grad + 0.1 * state["weight"]  # pivot
        state["momentum"].mul_(0.9).add_(grad)
        state["weight"].sub_(0.05 * state["momentum"])

    def decoupled(state, grad):
        state["momentum"].mul_(0.9).add_(grad)  # pivot
        state["weight"].mul_(1 - 0.05 * 0.1)  # pivot
        state["weight"].sub_(0.05 * state["momentum"])

    return trainer(coupled), trainer(decoupled), seeded((16, 12), (16, 5))


@pair
def ema_update():
    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.online = nn.Linear(6, 6)
            for name, tensor in self.online.named_parameters():
                self.register_buffer("average_" + name, tensor.detach().clone() * 0.5)

    class Lerp(Average):
        def forward(self, x):
            with torch.no_grad():
                for name, tensor in self.online.named_parameters():
                    getattr(self, "average_" + name).lerp_(tensor, 0.1)  # pivot
            return self.online(x)

    class Weighted(Average):
        def forward(self, x):
            out = self.online(x)
            for name, tensor in self.online.named_parameters():
                average = getattr(self, "average_" + name)
                average.mul_(0.9).add_(tensor.detach(), alpha=0.1)  # pivot
            return out

    torch.manual_seed(5)
    first, second = Lerp(), Weighted()
    second.load_state_dict(first.state_dict())
    return first, second, seeded((4, 6))


@pair
def heads_view():
    weight = seeded((24, 72), seed=8)[0] / 5

    def split(x):
        q, k, v = (x @ weight).split(24, dim=-1)
        q, k, v = (t.view(2, 6, 4, 6).transpose(1, 2) for t in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v)
        return out.transpose(1, 2).reshape(2, 6, 24)  # pivot

    def forgotten(x):
        projected = torch.matmul(x, weight)
        q, k, v = [projected[..., i * 24 : (i + 1) * 24].reshape(2, 6, 4, 6).permute(0, 2, 1, 3) for i in range(3)]
        return F.scaled_dot_product_attention(q, k, v).reshape(2, 6, 24)  # pivot

    return split, forgotten, [seeded((2, 6, 24))[0].requires_grad_()]


@pair
def expert_order():
    experts = [t / 4 for t in seeded((10, 10), (10, 10), (10, 10), seed=21)]

    def forward_order(x, gates):
        parts = [gates[:, i : i + 1] * (x @ experts[i]) for i in range(3)]
        total = parts[0]
        for part in parts[1:]:
            total = total + part  # pivot
        return total.relu()

    def backward_order(x, gates):
        total = None
        for i in reversed(range(3)):
            part = torch.matmul(x, experts[i]) * gates[:, i, None]
            total = part if total is None else total + part  # pivot
        return torch.relu(total)

    x, gates = seeded((8, 10), (8, 3))
    return forward_order, backward_order, [x, gates.softmax(-1)]


@pair
def einsum_indices():
    def right(q, k, v):
        scores = torch.einsum("bihd,bjhd->bhij", q, k)
        weights = scores.softmax(-1)
        return torch.einsum("bhij,bjhd->bihd", weights, v)  # pivot

    def turned(q, k, v):
        weights = torch.einsum("bihd,bjhd->bhij", q, k).softmax(-1)
        return torch.einsum("bhji,bjhd->bihd", weights, v)  # pivot

    return right, turned, [t.requires_grad_() for t in seeded((2, 5, 3, 8), (2, 5, 3, 8), (2, 5, 3, 8))]


@pair
def autocast_softmax():
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 7))

    def automatic(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x).float().log_softmax(-1)  # pivot

    def low(x):
        with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
            scores = model(x)
        return torch.log_softmax(scores, dim=-1).float()  # pivot

    return automatic, low, seeded((6, 12))


@pair
def dropout_order():
    def first(x):
        x = F.dropout(x, 0.3)  # pivot
        noise = torch.rand(x.shape[-1])
        return x + noise

    def second(x):
        noise = torch.rand(x.shape[-1])  # pivot
        return F.dropout(x, 0.3) + noise

    return first, second, seeded((5, 40))


@pair
def scatter_duplicates():
    index = torch.tensor([0, 2, 2, 1, 0])

    def added(x):
        out = torch.zeros(3, 4)
        out.index_add_(0, index, x.exp())  # pivot
        return out / 2

    def written(x):
        out = x.new_zeros(3, 4)
        out[index] += torch.exp(x)  # pivot
        return 0.5 * out

    return added, written, seeded((5, 4))


@pair
def straight_through():
    def kept(x):
        rounded = (x * 4).round() / 4
        return (x + (rounded - x).detach()).pow(2)  # pivot

    def lost(x):
        rounded = (x * 4).round() / 4
        return torch.square(x + (rounded - x))  # pivot

    return kept, lost, [seeded((3, 17))[0].requires_grad_()]


@pair
def norm_place():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(10)
            self.mix = nn.Sequential(nn.Linear(10, 20), nn.SiLU(), nn.Linear(20, 10))

    class Before(Block):
        def forward(self, x):
            return x + self.mix(self.norm(x))  # pivot

    class After(Block):
        def forward(self, x):
            return self.norm(x + self.mix(x))  # pivot

    torch.manual_seed(9)
    first, second = Before(), After()
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    return first, second, seeded((4, 3, 10))
