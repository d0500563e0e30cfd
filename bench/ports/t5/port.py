"""T5 with names of its own: one residual block for self attention, cross attention and the feed-forward part."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from weights import BUCKETS, DIM, FARTHEST, HEADS, HIDDEN, LAYERS, VOCAB, batch, state


class Scale(nn.Module):
    """x over its root mean square."""
    def __init__(self):
        super().__init__()
        self.g = nn.Parameter(torch.ones(DIM))

    def forward(self, x):
        return F.rms_norm(x, (DIM,), self.g, eps=1e-6)


def bucket(distance, both):
    """Of key - query; half of the buckets are exact, the others logarithmic."""
    buckets, first = BUCKETS, torch.zeros_like(distance)
    if both:
        buckets = buckets // 2
        first = torch.where(distance > 0, buckets, 0)
        distance = distance.abs()
    else:
        distance = (-distance).clamp(min=0)
    exact = buckets // 2
    far = torch.log(distance.clamp(min=1).float() / exact) / math.log(FARTHEST / exact) * (buckets - exact)
    far = (exact + far.long()).clamp(max=buckets - 1)
    return first + torch.where(distance < exact, distance, far)


class RelativeBias(nn.Module):
    def __init__(self, both):
        super().__init__()
        self.both, self.table = both, nn.Parameter(torch.zeros(BUCKETS, HEADS))

    def forward(self, length):
        place = torch.arange(length)
        return self.table[bucket(place[None, :] - place[:, None], self.both)].permute(2, 0, 1)


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.wq, self.wkv, self.wo = nn.Linear(DIM, DIM, bias=False), nn.Linear(DIM, 2 * DIM, bias=False), nn.Linear(DIM, DIM, bias=False)

    def forward(self, x, memory, bias):
        def split(t):
            return t.reshape(*t.shape[:-1], HEADS, -1).transpose(-3, -2)

        q = split(self.wq(x))
        k, v = (split(t) for t in self.wkv(memory).chunk(2, dim=-1))
        logits = q @ k.transpose(-1, -2)
        if bias is not None:
            logits = logits + bias
        mixed = torch.softmax(logits, dim=-1) @ v
        return self.wo(mixed.transpose(-3, -2).flatten(-2))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(DIM, HIDDEN, bias=False), nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x):
        return self.down(F.relu(self.up(x)))


class Stack(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.causal, self.bias, self.last = causal, RelativeBias(both=not causal), Scale()
        self.own, self.own_norm = nn.ModuleList(Attend() for _ in range(LAYERS)), nn.ModuleList(Scale() for _ in range(LAYERS))
        self.mlp, self.mlp_norm = nn.ModuleList(Mlp() for _ in range(LAYERS)), nn.ModuleList(Scale() for _ in range(LAYERS))
        if causal:
            self.cross, self.cross_norm = nn.ModuleList(Attend() for _ in range(LAYERS)), nn.ModuleList(Scale() for _ in range(LAYERS))

    def forward(self, x, memory=None):
        length = x.shape[1]
        bias = self.bias(length)
        if self.causal:
            bias = bias + torch.full((length, length), float("-inf")).triu(1)
        for i in range(LAYERS):
            n = self.own_norm[i](x)
            x = x + self.own[i](n, n, bias)
            if memory is not None:
                x = x + self.cross[i](self.cross_norm[i](x), memory, None)
            x = x + self.mlp[i](self.mlp_norm[i](x))
        return self.last(x)


class T5(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM)
        self.reader, self.writer = Stack(causal=False), Stack(causal=True)

    def forward(self, source, target):
        memory = self.reader(self.words(source))
        begun = F.pad(target[:, :-1], (1, 0))
        y = self.writer(self.words(begun), memory)
        y = y * DIM**-0.5
        logits = F.linear(y, self.words.weight)
        return F.cross_entropy(logits.transpose(1, 2), target)


def adopt(model, theirs):
    mine = {"words.weight": theirs["shared.weight"]}
    for side, ours, parts in (("encoder", "reader", ("own", "mlp")), ("decoder", "writer", ("own", "cross", "mlp"))):
        mine[f"{ours}.bias.table"] = theirs[f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"]
        mine[f"{ours}.last.g"] = theirs[f"{side}.final_layer_norm.weight"]
        for i in range(LAYERS):
            for j, part in enumerate(parts):
                layer = f"{side}.block.{i}.layer.{j}."
                mine[f"{ours}.{part}_norm.{i}.g"] = theirs[f"{layer}layer_norm.weight"]
                if part == "mlp":
                    mine[f"{ours}.mlp.{i}.up.weight"] = theirs[f"{layer}DenseReluDense.wi.weight"]
                    mine[f"{ours}.mlp.{i}.down.weight"] = theirs[f"{layer}DenseReluDense.wo.weight"]
                    continue
                layer += {"own": "SelfAttention.", "cross": "EncDecAttention."}[part]
                mine[f"{ours}.{part}.{i}.wq.weight"] = theirs[f"{layer}q.weight"]
                mine[f"{ours}.{part}.{i}.wkv.weight"] = torch.cat((theirs[f"{layer}k.weight"], theirs[f"{layer}v.weight"]))
                mine[f"{ours}.{part}.{i}.wo.weight"] = theirs[f"{layer}o.weight"]
    model.load_state_dict(mine)


def run():
    torch.set_num_threads(1)
    t5 = T5()
    adopt(t5, state())
    optimiser = torch.optim.AdamW(t5.parameters(), lr=1e-3, eps=1e-3, foreach=False)
    for i in range(2):
        optimiser.zero_grad()
        objective = t5(*batch(i))
        objective.backward()
        length = torch.nn.utils.get_total_norm([w.grad for w in t5.parameters()])
        optimiser.step()
        print(f"step {i} loss {objective.item():.9f} norm {length.item():.9f}", flush=True)


run()
