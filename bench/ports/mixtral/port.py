"""Mixtral with grouped experts, as MegaBlocks has them: rows are copied for their experts, sorted by expert, and added back.

Query, key and value are one weight in the order of Megatron: each group's queries, its key, its value.
"""
import torch
import torch.nn.functional as F
from torch import nn
from weights import BALANCE, CHOSEN, DIM, EXPERTS, HEADS, HIDDEN, KV_HEADS, LAYERS, VOCAB, WINDOW, batch, state

HEAD, GROUP = DIM // HEADS, HEADS // KV_HEADS


class Unit(nn.Module):
    """x over its root mean square."""
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(DIM))

    def forward(self, x):
        size = x.square().mean(-1, keepdim=True).add(1e-5).sqrt()
        return x / size * self.gain


def turn(x, places):
    """Dimension 1 is the sequence; the first half of a head is rotated with the second."""
    angles = places[:, None] * 1e6 ** (-torch.arange(0, HEAD, 2) / HEAD)
    cos, sin = angles.cos()[:, None, None], angles.sin()[:, None, None]
    low, high = x.tensor_split(2, dim=-1)
    return torch.cat((low * cos - high * sin, low * sin + high * cos), dim=-1)


def seen(places):
    """Which keys a query attends to."""
    back = places[:, None] - places
    return (back >= 0) & (back < WINDOW)


class GroupedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, (HEADS + 2 * KV_HEADS) * HEAD, bias=False)
        self.merge = nn.Linear(DIM, DIM, bias=False)

    def forward(self, x, places):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, KV_HEADS, GROUP + 2, HEAD).split((GROUP, 1, 1), dim=3)
        q, k = turn(q, places), turn(k, places)
        scores = torch.einsum("btgqd,bsgzd->bgqts", q, k) * HEAD**-0.5
        scores = torch.where(seen(places), scores, float("-inf"))
        mixed = torch.einsum("bgqts,bsgzd->btgqd", scores.softmax(-1), v)
        return self.merge(mixed.reshape(b, t, DIM))


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(EXPERTS, DIM))

    def forward(self, rows):
        """The chosen experts' weights, whose sum is 1; the experts; all scores."""
        scores = rows @ self.weight.T
        best, experts = scores.topk(CHOSEN, dim=-1)
        return best.softmax(-1), experts, scores


def add_back(made, weights, source, count):
    """Each copy times its weight, added to the row of which it is one."""
    return made.new_zeros(count, DIM).index_add(0, source, made * weights[:, None])


class GroupedExperts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = Router()
        self.gate, self.up = nn.Parameter(torch.zeros(EXPERTS, DIM, HIDDEN)), nn.Parameter(torch.zeros(EXPERTS, DIM, HIDDEN))
        self.down = nn.Parameter(torch.zeros(EXPERTS, HIDDEN, DIM))

    def forward(self, x):
        rows = x.flatten(0, 1)
        weights, experts, scores = self.router(rows)
        order = experts.flatten().argsort(stable=True)
        source = order // CHOSEN
        sizes = experts.flatten().bincount(minlength=EXPERTS).tolist()
        made = self.grouped(rows[source], sizes)
        back = add_back(made, weights.flatten()[order], source, rows.shape[0])
        return back.view_as(x), (scores, experts)

    def grouped(self, packed, sizes):
        parts = []
        for e, part in enumerate(packed.split(sizes)):
            parts.append((F.silu(part @ self.gate[e]) * (part @ self.up[e])) @ self.down[e])
        return torch.cat(parts)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre_mix, self.mix, self.pre_experts, self.experts = Unit(), GroupedAttention(), Unit(), GroupedExperts()

    def forward(self, x, places):
        x = x + self.mix(self.pre_mix(x), places)
        made, routed = self.experts(self.pre_experts(x))
        return x + made, routed


def balance(scores, experts):
    """The share of rows that each expert got times its mean chance, over all layers: 1 for each choice where both are even."""
    chances = scores.softmax(-1).mean(0)
    shares = F.one_hot(experts, EXPERTS).sum(1).float().mean(0)
    return EXPERTS * (chances * shares).sum()


class MoE(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.blocks = nn.Embedding(VOCAB, DIM), nn.ModuleList(Block() for _ in range(LAYERS))
        self.last, self.unembed = Unit(), nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, tokens, labels):
        x, places = self.words(tokens), torch.arange(tokens.shape[1])
        scores, experts = [], []
        for block in self.blocks:
            x, routed = block(x, places)
            scores.append(routed[0])
            experts.append(routed[1])
        words = F.cross_entropy(self.unembed(self.last(x)).flatten(0, 1), labels.flatten())
        return words + BALANCE * balance(torch.cat(scores), torch.cat(experts))


def fuse(q, k, v):
    """Of three weights one, group by group."""
    q, k, v = (w.view(KV_HEADS, -1, HEAD, DIM) for w in (q, k, v))
    return torch.cat((q, k, v), dim=1).view(-1, DIM)


def convert(theirs):
    mine = {"words.weight": theirs["model.embed_tokens.weight"], "last.gain": theirs["model.norm.weight"], "unembed.weight": theirs["lm_head.weight"]}
    for i in range(LAYERS):
        a, b = f"model.layers.{i}.", f"blocks.{i}."
        mine[f"{b}pre_mix.gain"], mine[f"{b}pre_experts.gain"] = theirs[f"{a}input_layernorm.weight"], theirs[f"{a}post_attention_layernorm.weight"]
        mine[f"{b}mix.qkv.weight"] = fuse(*(theirs[f"{a}self_attn.{n}_proj.weight"] for n in "qkv"))
        mine[f"{b}mix.merge.weight"] = theirs[f"{a}self_attn.o_proj.weight"]
        mine[f"{b}experts.router.weight"] = theirs[f"{a}mlp.gate.weight"]
        mine[f"{b}experts.gate"], mine[f"{b}experts.up"] = theirs[f"{a}mlp.experts.gate_up_proj"].mT.chunk(2, dim=-1)
        mine[f"{b}experts.down"] = theirs[f"{a}mlp.experts.down_proj"].mT
    return mine


def main():
    torch.set_num_threads(1)
    moe = MoE()
    moe.load_state_dict(convert(state()))
    adamw = torch.optim.AdamW(moe.parameters(), lr=1e-3, eps=1e-3, foreach=False)
    for n in range(2):
        cost = moe(*batch(n))
        cost.backward()
        total = torch.nn.utils.get_total_norm([p.grad for p in moe.parameters()])
        adamw.step()
        adamw.zero_grad()
        print(f"step {n} loss {cost.item():.9f} norm {total.item():.9f}", flush=True)


main()
