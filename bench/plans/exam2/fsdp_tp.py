"""FSDP2 over tensor parallelism on a mesh of two by two: cross attention of two inputs, DTensor layers then fully_shard,
micro-batch sums, Adam."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

WORLD = ("dp", "tp")
DIMS = dict(dp=2, tp=2, batch=4, queries=2, keys=3, width=8, heads=2, micros=2)


class Cross(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.heads, w = d["heads"], d["width"]
        self.q, self.k, self.v, self.o = (nn.Linear(w, w, bias=n == "k") for n in "qkvo")
        self.fc1, self.fc2 = nn.Linear(w, w), nn.Linear(w, w)
        self.norm = nn.LayerNorm(w)

    def forward(self, x, memory):
        b = x.shape[0]
        q = self.q(self.norm(x)).view(b, x.shape[1], self.heads, -1).transpose(1, 2)
        k, v = (m(memory).view(b, memory.shape[1], self.heads, -1).transpose(1, 2) for m in (self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.o(y)
        return x + self.fc2(F.softplus(self.fc1(x)))


class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.layers = nn.ModuleList(Cross(d) for _ in range(2))

    def forward(self, x, memory):
        for m in self.layers:
            x = m(x, memory)
        return x


def build(net, d, dp, group):
    params = dict(net.named_parameters())
    rows = d["batch"] // dp
    x = torch.randn(d["micros"], rows, d["queries"], d["width"])
    memory = torch.randn(d["micros"], rows, d["keys"], d["width"])
    target = torch.randn(d["micros"], rows, d["queries"], d["width"])
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, betas=(0.9, 0.99), eps=1e-4, foreach=False)

    def step():
        loss = 0
        for i in range(d["micros"]):
            part = F.mse_loss(net(x[i], memory[i]), target[i]) / d["micros"]
            part.backward()
            loss = loss + part.detach()
        if group is not None:
            torch.distributed.all_reduce(loss, group=group)
            loss /= dp
        optimizer.step()
        return {"loss": loss, **{"grad:" + n: p.grad for n, p in params.items()}, **{"new:" + n: p for n, p in params.items()}}
    return dict(state={**params, "x": x, "memory": memory, "target": target}, tokens={}, step=step)


def logical(d):
    return build(Net(d), d, 1, None)


def plan(rank, d):
    dp, tp = d["dp"], d["tp"]
    mesh = init_device_mesh("cpu", (dp, tp), mesh_dim_names=WORLD)
    net = Net(d)
    for layer in net.layers:
        parallelize_module(layer, mesh["tp"], {
            "q": ColwiseParallel(), "k": ColwiseParallel(), "v": ColwiseParallel(), "o": RowwiseParallel(),
            "fc1": ColwiseParallel(), "fc2": RowwiseParallel()})
        layer.heads //= tp
        fully_shard(layer, mesh=mesh["dp"])
    fully_shard(net, mesh=mesh["dp"])
    data, part = divmod(rank, tp)

    def place(name, full):
        if name in ("x", "memory", "target"):
            return full.chunk(dp, 1)[data]
        kind = name.split(".")[-2]
        if kind in ("q", "k", "v", "fc1"):
            full = full.chunk(tp, 0)[part]
        elif kind in ("o", "fc2") and name.endswith("weight"):
            full = full.chunk(tp, 1)[part]
        return full.chunk(dp, 0)[data]
    return dict(build(net, d, dp, mesh["dp"].get_group()), place=place)
