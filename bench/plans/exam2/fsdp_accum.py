"""FSDP2 (fully_shard) of a tanh autoencoder with checkpointed blocks: accumulation over weighted micro-batches without
gradient synchronisation but for the last one, clip_grad_norm_, torch's AdamW with two groups."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.checkpoint import checkpoint

WORLD = 2
DIMS = dict(rows=4, micros=2, width=4, code=4)


class Layer(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.norm = nn.LayerNorm(a)
        self.lin = nn.Linear(a, b)

    def forward(self, x):
        return torch.tanh(self.lin(self.norm(x)))


class Auto(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.down = nn.ModuleList([Layer(d["width"], d["width"]), Layer(d["width"], d["code"])])
        self.up = nn.ModuleList([Layer(d["code"], d["width"]), Layer(d["width"], d["width"])])
        self.out = nn.Linear(d["width"], d["width"])

    def forward(self, x):
        for m in [*self.down, *self.up]:
            x = checkpoint(m, x, use_reentrant=False)
        return self.out(x)


def make_optimizer(net):
    flat = [p for p in net.parameters() if p.ndim < 2]
    deep = [p for p in net.parameters() if p.ndim >= 2]
    return torch.optim.AdamW([dict(params=deep, weight_decay=0.1), dict(params=flat, weight_decay=0.0)],
                             lr=0.01, betas=(0.9, 0.95), eps=1e-5, foreach=False)


def build(net, d, parts):
    rows = d["rows"] // parts
    params = dict(net.named_parameters())
    # weights of samples: the loss is their weighted mean over the whole batch
    batch = {"x": torch.randn(d["micros"], rows, d["width"]), "pos_weight": torch.rand(d["micros"], rows)}
    optimizer = make_optimizer(net)

    def step():
        total = batch["pos_weight"].sum()
        if parts > 1:
            torch.distributed.all_reduce(total)
        losses = []
        for i in range(d["micros"]):
            if parts > 1:
                net.set_requires_gradient_sync(i == d["micros"] - 1)
            x, w = batch["x"][i], batch["pos_weight"][i]
            loss = (w[:, None] * (net(x) - x).square()).sum() / (total * d["width"])
            (loss * parts).backward()  # FSDP averages over the ranks
            losses.append(loss.detach())
        loss = torch.stack(losses).sum()
        if parts > 1:
            torch.distributed.all_reduce(loss)
        norm = nn.utils.clip_grad_norm_(net.parameters(), 0.3, foreach=False)
        if parts > 1:
            norm = norm.full_tensor()
        optimizer.step()
        return {"loss": loss, "norm": norm, **{"grad:" + n: p.grad for n, p in params.items()},
                **{"new:" + n: p for n, p in params.items()}}
    return dict(state={**params, **batch}, tokens={}, step=step)


def logical(d):
    return build(Auto(d), d, 1)


def plan(rank, d):
    net = Auto(d)
    mesh = init_device_mesh("cpu", (WORLD,))
    for m in [*net.down, *net.up]:
        fully_shard(m, mesh=mesh)
    fully_shard(net, mesh=mesh)

    def place(name, full):
        return full.chunk(WORLD, 1)[rank] if name in ("x", "pos_weight") else None
    return dict(build(net, d, WORLD), place=place)
