"""HSDP by hand: weights sharded in groups of two, replicated over two such groups; each layer gathers its weight before
use, forgets it, gathers it again for the backward pass, and reduce-scatters its gradient."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

WORLD = ("replica", "shard")
DIMS = dict(replica=2, shard=2, rows=8, width=4, layers=3)
MOMENTUM, LR = 0.9, 0.1


class Groups:
    def __init__(self, d, rank):
        r, s = d["replica"], d["shard"]
        shard_groups = [dist.new_group([i * s + j for j in range(s)]) for i in range(r)]
        replica_groups = [dist.new_group([i * s + j for i in range(r)]) for j in range(s)]
        self.shard = shard_groups[rank // s]
        self.replica = replica_groups[rank % s]
        self.shards, self.replicas = s, r
        self.index = rank % s


def whole(part, g):
    out = torch.empty(part.shape[0] * g.shards, *part.shape[1:], dtype=part.dtype)
    dist.all_gather_into_tensor(out, part, group=g.shard)
    return out


class ShardedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, g):
        ctx.save_for_backward(x, weight)
        ctx.g = g
        return x @ whole(weight, g).t() + whole(bias, g)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        g = ctx.g
        full = whole(weight, g)
        gw, gb = torch.empty_like(weight), weight.new_empty(weight.shape[0])
        dist.reduce_scatter_tensor(gw, (grad.t() @ x).contiguous(), group=g.shard)
        dist.reduce_scatter_tensor(gb, grad.sum(0), group=g.shard)
        for t in (gw, gb):
            dist.all_reduce(t, group=g.replica)
            t /= g.shards * g.replicas
        return grad @ full, gw, gb, None


def build(d, g):
    parts, n = (g.shards * g.replicas, g.shards) if g else (1, 1)
    w = d["width"]
    params = {}
    for i in range(d["layers"]):
        params[f"w{i}"] = torch.randn(w // n, w, requires_grad=True)
        params[f"b{i}"] = torch.randn(w // n, requires_grad=True)
    speed = {"speed." + k: torch.zeros_like(t) for k, t in params.items()}
    x = torch.randn(d["rows"] // parts, w)

    def layer(i, y):
        if g:
            return ShardedLinear.apply(y, params[f"w{i}"], params[f"b{i}"], g)
        return F.linear(y, params[f"w{i}"], params[f"b{i}"])

    def step():
        y = x
        for i in range(d["layers"]):
            y = layer(i, y)
            if i < d["layers"] - 1:
                y = F.elu(y)
        loss = (y - x).square().mean() + 0.1 * (y - x).abs().mean()
        loss.backward()
        loss = loss.detach().clone()
        if g:
            dist.all_reduce(loss)
            loss /= parts
        with torch.no_grad():
            for k, p in params.items():
                v = speed["speed." + k]
                v.mul_(MOMENTUM).add_(p.grad)
                p.sub_(LR * v)
        return {"loss": loss, **{"grad:" + k: p.grad for k, p in params.items()},
                **{"new:" + k: p for k, p in params.items()}, **{"new:" + k: v for k, v in speed.items()}}
    return dict(state={**params, **speed, "x": x}, tokens={}, step=step)


def logical(d):
    return build(d, None)


def plan(rank, d):
    g = Groups(d, rank)

    def place(name, full):
        if name == "x":
            return full.chunk(g.shards * g.replicas, 0)[rank]
        return full.chunk(g.shards, 0)[g.index]
    return dict(build(d, g), place=place)
