"""Ulysses: all-to-all from sequence slices to head slices and back."""
import torch
import torch.distributed as dist
from attn import Block, causal, logical, train

WORLD = 2
DIMS = dict(batch=2, seq=4, hidden=8, heads=4, ffn=6)

def swap(x, scatter, gather):
    """Cuts dimension `scatter` over the ranks, joins dimension `gather`."""
    parts = [p.contiguous() for p in x.chunk(WORLD, scatter)]
    out = [torch.empty_like(p) for p in parts]
    dist.all_to_all(out, parts)
    return torch.cat(out, gather)

class Swap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scatter, gather):
        ctx.way = scatter, gather
        return swap(x, scatter, gather)
    @staticmethod
    def backward(ctx, g):
        scatter, gather = ctx.way
        return swap(g, gather, scatter), None, None

def plan(rank, d):
    n = d["seq"] // WORLD
    pos, whole = rank * n + torch.arange(n), torch.arange(d["seq"])
    def attend(q, k, v):
        q, k, v = (Swap.apply(t, 1, 2) for t in (q, k, v))
        return Swap.apply(causal(q, k, v, whole, whole), 2, 1)
    net = Block(d, attend)
    x, y = (torch.randn(d["batch"], n, d["hidden"]) for _ in "xy")
    x.requires_grad_()
    def finish(params, loss):
        for p in params.values():
            dist.all_reduce(p.grad)
        dist.all_reduce(loss)
        return loss
    def place(name, full):
        return full.chunk(WORLD, 1)[rank] if name in ("x", "y") else full
    return dict(train(net, x, y, pos, lambda e: e.mean() / WORLD, finish), place=place)
