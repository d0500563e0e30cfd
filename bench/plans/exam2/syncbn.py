"""Batch norm in training, synchronised by hand over unequal batches; running statistics; SGD whose rate warms up;
gradients all-reduced with weights by the number of rows."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

WORLD = 2
DIMS = dict(rows=5, features=3, hidden=4, classes=3)
TOKENS = "classes"
LR, MOMENTUM, EPS = 0.1, 0.1, 1e-5


class SyncStats(torch.autograd.Function):
    """Normalises with the mean and variance of all ranks' rows."""
    @staticmethod
    def forward(ctx, x, weight, bias, count):
        sums = torch.cat([x.sum(0), x.square().sum(0)])
        dist.all_reduce(sums)
        mean, square = (sums / count).chunk(2)
        var = square - mean * mean
        inv = torch.rsqrt(var + EPS)
        hat = (x - mean) * inv
        ctx.save_for_backward(hat, inv, weight)
        ctx.count = count
        ctx.mark_non_differentiable(mean, var)
        return hat * weight + bias, mean, var

    @staticmethod
    def backward(ctx, g, _, __):
        hat, inv, weight = ctx.saved_tensors
        gw, gb = (g * hat).sum(0), g.sum(0)
        sums = torch.cat([gw, gb])
        dist.all_reduce(sums)
        all_w, all_b = (sums / ctx.count).chunk(2)
        gx = weight * inv * (g - all_b - hat * all_w)
        return gx, gw, gb, None


class SyncNorm(nn.Module):
    def __init__(self, n, count):
        super().__init__()
        self.weight, self.bias, self.count = nn.Parameter(torch.ones(n)), nn.Parameter(torch.zeros(n)), count
        self.register_buffer("running_mean", torch.zeros(n))
        self.register_buffer("running_var", torch.ones(n))

    def forward(self, x):
        y, mean, var = SyncStats.apply(x, self.weight, self.bias, self.count)
        with torch.no_grad():
            unbiased = var * self.count / (self.count - 1)
            self.running_mean.mul_(1 - MOMENTUM).add_(mean, alpha=MOMENTUM)
            self.running_var.mul_(1 - MOMENTUM).add_(unbiased, alpha=MOMENTUM)
        return y


class Net(nn.Module):
    def __init__(self, d, norm):
        super().__init__()
        self.a, self.n1 = nn.Linear(d["features"], d["hidden"], bias=False), norm(d["hidden"])
        self.b, self.n2 = nn.Linear(d["hidden"], d["hidden"], bias=False), norm(d["hidden"])
        self.c = nn.Linear(d["hidden"], d["classes"])

    def forward(self, x):
        x = F.leaky_relu(self.n1(self.a(x)), 0.2)
        return self.c(x + F.leaky_relu(self.n2(self.b(x)), 0.2))


def build(d, net, rows, parallel):
    params = dict(net.named_parameters())
    buffers = {n: b for n, b in net.named_buffers() if b.is_floating_point()}
    x, labels = torch.randn(rows, d["features"]), torch.zeros(rows, dtype=torch.long)
    optimizer = torch.optim.SGD(net.parameters(), lr=LR, foreach=False)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=4)

    def step():
        loss = F.cross_entropy(net(x), labels, reduction="sum") / d["rows"]
        loss.backward()
        loss = loss.detach().clone()
        if parallel:
            dist.all_reduce(loss)
            for p in params.values():
                dist.all_reduce(p.grad)
        optimizer.step()
        schedule.step()
        return {"loss": loss, **{"grad:" + n: p.grad for n, p in params.items()},
                **{"new:" + n: p for n, p in params.items()}, **{"new:" + n: b for n, b in buffers.items()}}
    return dict(state={**params, **buffers, "x": x}, tokens={"labels": labels}, step=step)


def logical(d):
    return build(d, Net(d, lambda n: nn.BatchNorm1d(n, eps=EPS, momentum=MOMENTUM)), d["rows"], False)


def plan(rank, d):
    first = d["rows"] // WORLD
    begin, end = (0, first) if rank == 0 else (first, d["rows"])

    def place(name, full):
        return full[begin:end] if name in ("x", "labels") else full
    return dict(build(d, Net(d, lambda n: SyncNorm(n, d["rows"])), end - begin, True), place=place)
