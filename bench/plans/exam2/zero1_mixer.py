"""ZeRO-1 by hand on an MLP-mixer: gradients reduce-scattered as one flat vector, each rank's slice of Adam's moments,
clipping by the whole norm, parameters gathered again."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

WORLD = 2
DIMS = dict(rows=4, patches=3, channels=4, tokens=2, inner=4, classes=2)
LR, B1, B2, EPS, STEP, LIMIT, L2 = 0.05, 0.9, 0.99, 1e-4, 2, 1.0, 0.02


class MixerBlock(nn.Module):
    def __init__(self, d):
        super().__init__()
        p, c = d["patches"], d["channels"]
        self.norm1, self.norm2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.t1, self.t2 = nn.Linear(p, d["tokens"]), nn.Linear(d["tokens"], p)
        self.c1, self.c2 = nn.Linear(c, d["inner"]), nn.Linear(d["inner"], c)

    def forward(self, x):
        y = self.norm1(x).transpose(1, 2)
        x = x + self.t2(F.gelu(self.t1(y))).transpose(1, 2)
        return x + self.c2(F.gelu(self.c1(self.norm2(x))))


class Mixer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.stem = nn.Linear(d["channels"], d["channels"])
        self.block = MixerBlock(d)
        self.norm = nn.LayerNorm(d["channels"])
        self.head = nn.Linear(d["channels"], d["classes"])

    def forward(self, x):
        return self.head(self.norm(self.block(self.stem(x))).mean(1))


def build(d, parts, rank):
    net = Mixer(d)
    params = dict(net.named_parameters())
    count = sum(p.numel() for p in params.values())
    padded = -(-count // parts) * parts
    shard = padded // parts
    # logical: moments of the whole vector, with the room that padding takes on WORLD ranks
    full = -(-count // WORLD) * WORLD
    m, v = torch.zeros(full // parts), torch.ones(full // parts)
    x = torch.randn(d["rows"] // parts, d["patches"], d["channels"])
    y = torch.randn(d["rows"] // parts, d["classes"])

    def adam(w, g, m, v):
        g = g + L2 * w
        m.mul_(B1).add_(g, alpha=1 - B1)
        v.mul_(B2).addcmul_(g, g, value=1 - B2)
        rate = LR / (1 - B1 ** STEP)
        return w - rate * m / (v.sqrt() / (1 - B2 ** STEP) ** 0.5 + EPS)

    def flat(tensors, size):
        one = torch.cat([t.reshape(-1) for t in tensors])
        return F.pad(one, (0, size - count))

    def step():
        loss = F.mse_loss(net(x), y)
        loss.backward()
        with torch.no_grad():
            loss = loss.detach().clone()
            grads = flat([p.grad for p in params.values()], full)
            if parts == 1:
                norm = grads.norm()
                g = grads * torch.clamp(LIMIT / (norm + 1e-6), max=1)
                new = adam(flat(params.values(), full), g, m, v)
            else:
                dist.all_reduce(loss)
                loss /= parts
                g = torch.empty(shard, dtype=grads.dtype)
                dist.reduce_scatter_tensor(g, grads)
                g /= parts
                square = g.square().sum()
                dist.all_reduce(square)
                norm = square.sqrt()
                g *= torch.clamp(LIMIT / (norm + 1e-6), max=1)
                mine = flat(params.values(), padded)[rank * shard:(rank + 1) * shard]
                mine = adam(mine, g, m, v)
                new = torch.empty(padded, dtype=mine.dtype)
                dist.all_gather_into_tensor(new, mine)
            at = 0
            for p in params.values():
                p.copy_(new[at:at + p.numel()].view_as(p))
                at += p.numel()
        return {"loss": loss, "norm": norm, "new:m": m, "new:v_sq": v, **{"new:" + n: p for n, p in params.items()}}
    return dict(state={**params, "m": m, "v_sq": v, "x": x, "y": y}, tokens={}, step=step)


def logical(d):
    return build(d, 1, 0)


def plan(rank, d):
    def place(name, full):
        return full.chunk(WORLD, 0)[rank] if name in ("m", "v_sq", "x", "y") else full
    return dict(build(d, WORLD, rank), place=place)
