"""Adapters of low rank on frozen, tensor-parallel layers (functional collectives): column-parallel keeps A whole and cuts
B, row-parallel cuts A and keeps B whole; Adam with accumulated micro-batches, done twice."""
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
import torch.nn as nn
import torch.nn.functional as F

WORLD = 2
DIMS = dict(micros=2, rows=2, width=4, inner=4, low=2, layers=2, steps=2)
ALPHA = 4.0
FROZEN = ("up", "up_bias", "down", "down_bias")
CUT = {"up": 0, "up_bias": 0, "up_b": 0, "down": 1, "down_a": 1}


class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return fc.wait_tensor(fc.all_reduce(g.contiguous(), "sum", dist.group.WORLD))


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return fc.wait_tensor(fc.all_reduce(x.contiguous(), "sum", dist.group.WORLD))

    @staticmethod
    def backward(ctx, g):
        return g


class Layer(nn.Module):
    def __init__(self, d, parts):
        super().__init__()
        w, n, r = d["width"], d["inner"] // parts, d["low"]
        shapes = dict(up=(n, w), up_bias=(n,), up_a=(r, w), up_b=(n, r), down=(w, n), down_bias=(w,), down_a=(r, n),
                      down_b=(w, r), norm=(w,))
        for name, shape in shapes.items():
            setattr(self, name, nn.Parameter(torch.randn(shape), requires_grad=name not in FROZEN))
        self.scale = ALPHA / r
        self.enter, self.leave = (Enter.apply, Leave.apply) if parts > 1 else (lambda x: x, lambda x: x)

    def forward(self, x):
        h = self.enter(F.rms_norm(x, x.shape[-1:], self.norm, 1e-6))
        low = F.linear(h, self.up_a)
        h = F.linear(h, self.up, self.up_bias) + self.scale * F.linear(low, self.up_b)
        h = F.mish(h)
        low = self.leave(F.linear(h, self.down_a))
        y = self.leave(F.linear(h, self.down))
        return x + y + self.down_bias + self.scale * F.linear(low, self.down_b)


def build(d, parts):
    net = nn.Sequential(*[Layer(d, parts) for _ in range(d["layers"])])
    params = dict(net.named_parameters())
    learned = {n: p for n, p in params.items() if p.requires_grad}
    x = torch.randn(d["steps"], d["micros"], d["rows"], d["width"])
    y = torch.randn(d["steps"], d["micros"], d["rows"], d["width"])
    optimizer = torch.optim.Adam(learned.values(), lr=0.01, betas=(0.8, 0.9), eps=1e-3, foreach=False)

    def step():
        out = {}
        for t in range(d["steps"]):
            optimizer.zero_grad()
            loss = 0.0
            for i in range(d["micros"]):
                part = F.mse_loss(net(x[t, i]), y[t, i]) / d["micros"]
                part.backward()
                loss = loss + part.detach()
            if parts > 1:
                for n, p in learned.items():
                    if n.endswith("up_a"):  # each rank has the part of its columns of B
                        dist.all_reduce(p.grad)
            out[f"loss{t}"] = loss
            optimizer.step()
        out.update({"grad:" + n: p.grad for n, p in learned.items()})
        out.update({"new:" + n: p for n, p in learned.items()})
        return out
    return dict(state={**params, "x": x, "y": y}, tokens={}, step=step)


def logical(d):
    return build(d, 1)


def plan(rank, d):
    def place(name, full):
        last = name.split(".")[-1]
        return full.chunk(WORLD, CUT[last])[rank] if last in CUT else full
    return dict(build(d, WORLD), place=place)
