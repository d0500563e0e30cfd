"""Tensor times data parallel: GPT-J's parallel residual blocks (one norm feeds attention and MLP), biases, interleaved
rotary on a part of each head, loss scale, clipping over both, AdamW with decay on matrices only."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

WORLD = ("dp", "tp")
DIMS = dict(dp=2, tp=2, batch=4, seq=3, width=8, heads=2, inner=4, layers=2, rot=2)
SCALE, LIMIT, LR, DECAY, B1, B2, EPS = 256.0, 0.4, 0.02, 0.1, 0.9, 0.98, 1e-6


class Comm:
    def __init__(self, d, rank):
        dp, tp = d["dp"], d["tp"]
        self.tp_size, self.dp_size = tp, dp
        self.dp_rank, self.tp_rank = divmod(rank, tp)
        for i in range(dp):
            g = dist.new_group(list(range(i * tp, (i + 1) * tp)))
            if i == self.dp_rank:
                self.tp = g
        for j in range(tp):
            g = dist.new_group(list(range(j, dp * tp, tp)))
            if j == self.tp_rank:
                self.dp = g

    def sum(self, x, group):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x


class F_(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, comm):
        ctx.comm = comm
        return x

    @staticmethod
    def backward(ctx, g):
        return ctx.comm.sum(g.contiguous(), ctx.comm.tp), None


class G_(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, comm):
        return comm.sum(x, comm.tp)

    @staticmethod
    def backward(ctx, g):
        return g, None


def interleaved(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)


class GptJ(nn.Module):
    def __init__(self, d, comm=None):
        super().__init__()
        self.d, self.comm = d, comm
        tp = comm.tp_size if comm else 1
        w = d["width"]
        self.hd, self.heads = w // d["heads"], d["heads"] // tp
        mine = self.heads * self.hd
        for i in range(d["layers"]):
            setattr(self, f"ln{i}", nn.LayerNorm(w))
            for n in "qkv":
                setattr(self, f"{n}{i}", nn.Linear(w, mine, bias=False))
            setattr(self, f"o{i}", nn.Linear(mine, w, bias=False))
            setattr(self, f"up{i}", nn.Linear(w, d["inner"] // tp))
            setattr(self, f"down{i}", nn.Linear(d["inner"] // tp, w))

    def layer(self, i, x):
        d = self.d
        b, s, _ = x.shape
        h = getattr(self, f"ln{i}")(x)
        if self.comm:
            h = F_.apply(h, self.comm)
        q, k, v = (getattr(self, f"{n}{i}")(h).view(b, s, self.heads, self.hd).transpose(1, 2) for n in "qkv")
        angle = torch.arange(s)[:, None] / 100.0 ** (torch.arange(0, d["rot"], 2) / d["rot"])[None]
        cos, sin = angle.cos(), angle.sin()
        q, k = (torch.cat([interleaved(t[..., :d["rot"]], cos, sin), t[..., d["rot"]:]], -1) for t in (q, k))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        down = getattr(self, f"down{i}")
        y = getattr(self, f"o{i}")(a) + F.linear(F.gelu(getattr(self, f"up{i}")(h), approximate="tanh"), down.weight)
        if self.comm:
            y = G_.apply(y, self.comm)
        return x + y + down.bias

    def forward(self, x):
        for i in range(self.d["layers"]):
            x = self.layer(i, x)
        return x


def cut(name):
    """The dimension that tensor parallel ranks share, or None."""
    kind = name.split(".")[0].rstrip("0123456789")
    if kind in ("q", "k", "v", "up"):
        return 0
    if kind in ("o", "down") and name.endswith("weight"):
        return 1
    return None


def build(d, comm):
    net = GptJ(d, comm)
    params = dict(net.named_parameters())
    rows = d["batch"] // (comm.dp_size if comm else 1)
    x, target = torch.randn(rows, d["seq"], d["width"]), torch.randn(rows, d["seq"], d["width"])
    opt = torch.optim.AdamW([
        dict(params=[p for n, p in params.items() if p.ndim > 1], weight_decay=DECAY),
        dict(params=[p for n, p in params.items() if p.ndim == 1], weight_decay=0.0)],
        lr=LR, betas=(B1, B2), eps=EPS, foreach=False)

    def step():
        loss = (net(x) - target).square().mean()
        (loss * SCALE).backward()
        loss = loss.detach().clone()
        if comm:
            dist.all_reduce(loss, group=comm.dp)
            loss /= comm.dp_size
        for p in params.values():
            if comm:
                dist.all_reduce(p.grad, group=comm.dp)
                p.grad /= comm.dp_size
            p.grad /= SCALE
        squares = torch.zeros(())
        for n, p in params.items():
            square = p.grad.square().sum()
            if comm and cut(n) is None and comm.tp_rank > 0:
                square = torch.zeros(())
            squares = squares + square
        if comm:
            dist.all_reduce(squares, group=comm.tp)
        norm = squares.sqrt()
        factor = (LIMIT / (norm + 1e-6)).clamp(max=1.0)
        for p in params.values():
            p.grad.mul_(factor)
        opt.step()
        return {"loss": loss, "norm": norm, **{"grad:" + n: p.grad for n, p in params.items()},
                **{"new:" + n: p for n, p in params.items()}}
    return dict(state={**params, "x": x, "target": target}, tokens={}, step=step)


def logical(d):
    return build(d, None)


def plan(rank, d):
    comm = Comm(d, rank)

    def place(name, full):
        if name in ("x", "target"):
            return full.chunk(comm.dp_size, 0)[comm.dp_rank]
        dim = cut(name)
        return full if dim is None else full.chunk(comm.tp_size, dim)[comm.tp_rank]
    return dict(build(d, comm), place=place)
