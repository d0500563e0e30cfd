"""Tensor parallel decoder block by hand: grouped queries, rotary, fused qkv and fused gate/up."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

WORLD = ("tp",)
DIMS = dict(tp=2, batch=2, seq=3, hidden=6, heads=4, kv=2, head=4, inner=4, layers=2)


class CopyToRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        dist.all_reduce(g)
        return g


class ReduceFromRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous().clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g


class Tp:
    def __init__(self, size, rank):
        self.size, self.rank = size, rank

    def enter(self, x):
        return CopyToRanks.apply(x) if self.size > 1 else x

    def leave(self, x):
        return ReduceFromRanks.apply(x) if self.size > 1 else x


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def rms(x, w):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * w


class Block:
    def __init__(self, d, tp):
        self.d, self.tp = d, tp
        self.heads, self.kv = d["heads"] // tp.size, d["kv"] // tp.size
        inner, hd, h = d["inner"] // tp.size, d["head"], d["hidden"]
        # qkv: for each group of heads its queries, then its key, then its value
        shapes = dict(norm1=(h,), qkv=((self.heads + 2 * self.kv) * hd, h), out=(h, self.heads * hd), norm2=(h,),
                      gate_up=(2 * inner, h), down=(h, inner))
        self.p = {n: torch.randn(s, requires_grad=True) for n, s in shapes.items()}

    def attention(self, x, cos, sin):
        b, s, _ = x.shape
        hd, per = self.d["head"], self.heads // self.kv
        qkv = (x @ self.p["qkv"].t()).view(b, s, self.kv, per + 2, hd)
        q, k, v = qkv.split([per, 1, 1], dim=3)
        q = q.reshape(b, s, self.heads, hd).transpose(1, 2)
        k = k.reshape(b, s, self.kv, hd).transpose(1, 2)
        v = v.reshape(b, s, self.kv, hd).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k = k.repeat_interleave(per, dim=1)
        v = v.repeat_interleave(per, dim=1)
        scores = q @ k.transpose(-1, -2) / hd ** 0.5
        scores = scores.masked_fill(torch.ones(s, s, dtype=torch.bool).triu(1), float("-inf"))
        y = scores.softmax(-1) @ v
        y = y.transpose(1, 2).reshape(b, s, self.heads * hd)
        return y @ self.p["out"].t()

    def mlp(self, x):
        gate, up = (x @ self.p["gate_up"].t()).chunk(2, -1)
        return (F.silu(gate) * up) @ self.p["down"].t()

    def __call__(self, x, cos, sin):
        h = self.tp.enter(rms(x, self.p["norm1"]))
        x = x + self.tp.leave(self.attention(h, cos, sin))
        h = self.tp.enter(rms(x, self.p["norm2"]))
        return x + self.tp.leave(self.mlp(h))


def build(d, tp):
    blocks = [Block(d, tp) for _ in range(d["layers"])]
    state = {f"{i}.{n}": t for i, b in enumerate(blocks) for n, t in b.p.items()}
    x = torch.randn(d["batch"], d["seq"], d["hidden"], requires_grad=True)
    target = torch.randn(d["batch"], d["seq"], d["hidden"])
    half = d["head"] // 2
    angle = torch.arange(d["seq"])[:, None] * (0.5 ** torch.arange(half))[None]
    cos, sin = angle.cos(), angle.sin()

    def step():
        y = x
        for b in blocks:
            y = b(y, cos, sin)
        loss = F.mse_loss(y, target)
        loss.backward()
        return {"loss": loss, "grad:x": x.grad, **{"grad:" + n: t.grad for n, t in state.items()}}
    return dict(state={**state, "x": x, "target": target}, tokens={}, step=step)


def logical(d):
    return build(d, Tp(1, 0))


def plan(rank, d):
    def place(name, full):
        what = name.split(".")[-1]
        if what == "qkv":
            return full.chunk(d["tp"], 0)[rank]
        if what == "gate_up":
            return torch.cat([part.chunk(d["tp"], 0)[rank] for part in full.chunk(2, 0)])
        if what in ("out", "down"):
            return full.chunk(d["tp"], 1)[rank]
        return full
    return dict(build(d, Tp(d["tp"], rank)), place=place)
