"""A U-Net whose images are cut by rows over the ranks: each convolution gets a row of its neighbours (a halo), with send
and receive there and, for gradients, back; strided and transposed convolutions, group norm over all rows."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

WORLD = 3
DIMS = dict(batch=2, rows=12, cols=4, channels=2)


def exchange(up, down, rank):
    """Sends `up` to the rank above and `down` to the one below; what they sent comes back, zeros at the borders."""
    from_above, from_below = torch.zeros_like(down), torch.zeros_like(up)
    work = []
    if rank > 0:
        work += [dist.P2POp(dist.isend, up, rank - 1), dist.P2POp(dist.irecv, from_above, rank - 1)]
    if rank < WORLD - 1:
        work += [dist.P2POp(dist.isend, down, rank + 1), dist.P2POp(dist.irecv, from_below, rank + 1)]
    for w in dist.batch_isend_irecv(work):
        w.wait()
    return from_above, from_below


class Halo(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, rank):
        ctx.rank = rank
        above, below = exchange(x[:, :, :1].contiguous(), x[:, :, -1:].contiguous(), rank)
        return torch.cat([above, x, below], 2)

    @staticmethod
    def backward(ctx, g):
        to_above, to_below = g[:, :, :1].contiguous(), g[:, :, -1:].contiguous()
        from_above, from_below = exchange(to_above, to_below, ctx.rank)
        g = g[:, :, 1:-1].clone()
        g[:, :, :1] += from_above
        g[:, :, -1:] += from_below
        return g, None


class Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        dist.all_reduce(g)
        return g


class Conv(nn.Conv2d):
    """3 by 3, of rows that have a halo already or, on one process, are padded."""
    def __init__(self, a, b, at):
        super().__init__(a, b, 3, padding=(1 if at is None else 0, 1))
        self.at = at

    def forward(self, x):
        return super().forward(x if self.at is None else Halo.apply(x, self.at))


class Norm(nn.Module):
    """One group: mean and variance are of all rows."""
    def __init__(self, c, at):
        super().__init__()
        self.weight, self.bias, self.at = nn.Parameter(torch.ones(c)), nn.Parameter(torch.zeros(c)), at

    def forward(self, x):
        if self.at is None:
            return F.group_norm(x, 1, self.weight, self.bias, 1e-5)
        n = x[0].numel() * WORLD
        sums = torch.stack([x.sum((1, 2, 3)), x.square().sum((1, 2, 3))])
        sums = Total.apply(sums)
        mean = sums[0] / n
        var = sums[1] / n - mean.square()
        x = (x - mean[:, None, None, None]) * (var + 1e-5).rsqrt()[:, None, None, None]
        return x * self.weight[:, None, None] + self.bias[:, None, None]


class UNet(nn.Module):
    def __init__(self, d, at):
        super().__init__()
        c = d["channels"]
        self.first, self.norm1 = Conv(1, c, at), Norm(c, at)
        self.down = nn.Conv2d(c, 2 * c, 2, stride=2)
        self.mid, self.norm2 = Conv(2 * c, 2 * c, at), Norm(2 * c, at)
        self.up = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.last = Conv(2 * c, 1, at)

    def forward(self, x):
        skip = F.silu(self.norm1(self.first(x)))
        y = self.down(skip)
        y = y + F.silu(self.norm2(self.mid(y)))
        y = torch.cat([self.up(y), skip], 1)
        return x + self.last(y)


def build(d, at):
    net = UNet(d, at)
    params = dict(net.named_parameters())
    rows = d["rows"] // (1 if at is None else WORLD)
    noisy = torch.randn(d["batch"], 1, rows, d["cols"], requires_grad=True)
    clean = torch.randn(d["batch"], 1, rows, d["cols"])

    def step():
        loss = (net(noisy) - clean).square().sum() / (d["batch"] * d["rows"] * d["cols"])
        loss.backward()
        loss = loss.detach().clone()
        if at is not None:
            dist.all_reduce(loss)
            for p in params.values():
                dist.all_reduce(p.grad)
        return {"loss": loss, "grad:noisy": noisy.grad, **{"grad:" + n: p.grad for n, p in params.items()}}
    return dict(state={**params, "noisy": noisy, "clean": clean}, tokens={}, step=step)


def logical(d):
    return build(d, None)


def plan(rank, d):
    def place(name, full):
        return full.chunk(WORLD, 2)[rank] if name in ("noisy", "clean") else full
    return dict(build(d, rank), place=place)
