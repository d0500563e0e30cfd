"""DTensor: parallelize_module with colwise/rowwise layers, sequence parallel norms, and two styles of our own:
a fused gate/up projection and a per-channel scale."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import (ColwiseParallel, ParallelStyle, PrepareModuleInput, RowwiseParallel,
                                               SequenceParallel, parallelize_module)

WORLD = 2
DIMS = dict(batch=2, seq=4, hidden=4, inner=4, heads=2, layers=2)


class Attention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.heads, h = d["heads"], d["hidden"]
        self.q, self.k, self.v = (nn.Linear(h, h, bias=False) for _ in range(3))
        self.o = nn.Linear(h, h)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = (m(x).view(b, s, self.heads, -1).transpose(1, 2) for m in (self.q, self.k, self.v))
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        y = scores.softmax(-1) @ v
        return self.o(y.transpose(1, 2).reshape(b, s, -1))


class GateUp(nn.Module):
    """One matrix for gate and up; its output is already silu(gate) * up."""
    def __init__(self, h, inner):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2, inner, h))

    def forward(self, x):
        gate, up = self.weight.unbind(0)
        return F.silu(x @ gate.t()) * (x @ up.t())


class Scale(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n))

    def forward(self, x):
        return x * self.weight


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        h = d["hidden"]
        self.norm1, self.norm2 = nn.LayerNorm(h), nn.RMSNorm(h, eps=1e-5)
        self.attn = Attention(d)
        self.gate_up, self.scale, self.down = GateUp(h, d["inner"]), Scale(d["inner"]), nn.Linear(d["inner"], h, bias=False)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.down(self.scale(self.gate_up(self.norm2(x))))


class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.inp = nn.Linear(d["hidden"], d["hidden"])
        self.blocks = nn.ModuleList(Block(d) for _ in range(d["layers"]))
        self.norm = nn.LayerNorm(d["hidden"])
        self.out = nn.Linear(d["hidden"], d["hidden"])

    def forward(self, x):
        x = self.inp(x)
        for b in self.blocks:
            x = b(x)
        return self.out(self.norm(x))


class ShardedWeight(ParallelStyle):
    """A module whose weight is cut along one dimension, and that works on local tensors."""
    def __init__(self, dim, gather):
        self.dim, self.gather = dim, gather

    def _apply(self, module, mesh):
        def cut(name, m, mesh):
            m.weight = nn.Parameter(distribute_tensor(m.weight, mesh, [Shard(self.dim)]))

        def before(m, inputs, mesh):
            x = inputs[0]
            if not isinstance(x, DTensor):
                x = DTensor.from_local(x, mesh, [Shard(1)] if self.gather else [Shard(-1)], run_check=False)
            if self.gather:
                x = x.redistribute(mesh, [Replicate()])
            return (x,)

        def after(m, output, mesh):
            return output.to_local()
        return distribute_module(module, mesh, cut, before, after)


def parallelize(net, mesh):
    parallelize_module(net, mesh, {
        "inp": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "out": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    })
    for b in net.blocks:
        parallelize_module(b, mesh, {
            "norm1": SequenceParallel(),
            "norm2": SequenceParallel(use_local_output=False),
            "attn": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
            "attn.q": ColwiseParallel(), "attn.k": ColwiseParallel(), "attn.v": ColwiseParallel(),
            "attn.o": RowwiseParallel(output_layouts=Shard(1)),
            "gate_up": ShardedWeight(1, gather=True),
            "scale": ShardedWeight(0, gather=False),
            "down": RowwiseParallel(input_layouts=Shard(-1), output_layouts=Shard(1)),
        })
        b.attn.heads //= mesh.size()


def settle(p):
    """The gradient, laid out as its parameter: a norm's is a part of a sum."""
    if isinstance(p, DTensor):
        return p.grad.redistribute(p.device_mesh, p.placements)
    return p.grad


def build(net, d):
    x = torch.randn(d["batch"], d["seq"], d["hidden"], requires_grad=True)
    target = torch.randn(d["batch"], d["seq"], d["hidden"])
    params = dict(net.named_parameters())

    def step():
        loss = F.smooth_l1_loss(net(x), target)
        loss.backward()
        return {"loss": loss, "grad:x": x.grad, **{"grad:" + n: settle(p) for n, p in params.items()}}
    return dict(state={**params, "x": x, "target": target}, tokens={}, step=step)


def logical(d):
    return build(Net(d), d)


def plan(rank, d):
    net = Net(d)
    parallelize(net, init_device_mesh("cpu", (WORLD,), mesh_dim_names=("tp",)))
    return build(net, d)
