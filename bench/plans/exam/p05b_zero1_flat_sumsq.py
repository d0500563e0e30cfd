"""ZeRO-1 by hand: one flat padded buffer, reduce_scatter of gradients, AdamW on the own shard, all_gather of parameters.
Gradient clipping by the global norm."""
import torch
import torch.nn.functional as F
import torch.distributed as dist
from mlp import DIMS, TOKENS, Net, data

WORLD, CLIP, LR = 2, 0.5, 0.01

def logical(d):
    net = Net(d)
    x, t = data(d)
    params = dict(net.named_parameters())
    opt = torch.optim.AdamW(params.values(), lr=LR, weight_decay=0.1)
    def step():
        loss = F.cross_entropy(net(x), t)
        loss.backward()
        norm = sum(p.grad.pow(2).sum() for p in params.values()).sqrt()
        for p in params.values():
            p.grad.mul_((CLIP / (norm + 1e-6)).clamp(max=1.0))
        opt.step()
        return {"loss": loss.detach(), "gnorm": norm, **{"new:" + n: p for n, p in params.items()}}
    return dict(state=dict(params, x=x), tokens=dict(t=t), step=step)

def plan(rank, d):
    net = Net(d)
    x, t = data(d, d["batch"] // WORLD)
    params = dict(net.named_parameters())
    total = sum(p.numel() for p in params.values())
    size = -(-total // WORLD)
    shard = torch.nn.Parameter(torch.zeros(size))
    opt = torch.optim.AdamW([shard], lr=LR, weight_decay=0.1)
    def flat(ts):
        v = torch.cat([a.reshape(-1) for a in ts])
        return F.pad(v, (0, size * WORLD - total))
    def step():
        loss = F.cross_entropy(net(x), t)
        loss.backward()
        g = torch.empty(size)
        dist.reduce_scatter_tensor(g, flat([p.grad for p in params.values()]))
        g /= WORLD
        sq = g.pow(2).sum()
        dist.all_reduce(sq)
        norm = sq.sqrt()
        shard.grad = g * (CLIP / (norm + 1e-6)).clamp(max=1.0)
        with torch.no_grad():
            shard.copy_(flat(params.values())[rank * size:(rank + 1) * size])
        opt.step()
        whole = torch.empty(size * WORLD)
        dist.all_gather_into_tensor(whole, shard.detach())
        at = 0
        with torch.no_grad():
            for p in params.values():
                p.copy_(whole[at:at + p.numel()].view_as(p))
                at += p.numel()
        mean = loss.detach() / WORLD
        dist.all_reduce(mean)
        return {"loss": mean, "gnorm": norm, **{"new:" + n: p for n, p in params.items()}}
    def place(name, full):
        return full.chunk(WORLD)[rank] if name in ("x", "t") else full
    return dict(state=dict(params, x=x), tokens=dict(t=t), step=step, place=place)
