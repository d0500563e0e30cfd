"""ZeRO-2 by owners: hooks send each gradient, as soon as it is there, to the rank that owns the parameter; the owner does
Adamax by hand and broadcasts. A denoising autoencoder with tied encoder and decoder, and an averaged (EMA)
copy of the weights."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

WORLD = 2
DIMS = dict(rows=4, width=4, code=3)
LR, B1, B2, EPS, STEP, EMA = 0.05, 0.9, 0.95, 1e-3, 4, 0.99


class Auto(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.tied = nn.Parameter(torch.randn(d["code"], d["width"]))
        self.encode_bias = nn.Parameter(torch.randn(d["code"]))
        self.decode_bias = nn.Parameter(torch.randn(d["width"]))
        self.scale = nn.Parameter(torch.randn(d["code"]))

    def forward(self, x):
        h = torch.sigmoid(F.linear(x, self.tied, self.encode_bias)) * self.scale
        return F.linear(h, self.tied.t(), self.decode_bias)


def build(d, parts, rank):
    net = Auto(d)
    params = dict(net.named_parameters())
    owner = {n: i % parts for i, n in enumerate(params)}
    held = [n for n in params if owner[n] == rank or parts == 1]
    slots = {}
    for n in held:
        slots["m." + n] = torch.zeros_like(params[n])
        slots["u_sq." + n] = torch.ones_like(params[n])
        slots["ema." + n] = torch.zeros_like(params[n])
    clean = torch.randn(d["rows"] // parts, d["width"])
    noise = torch.randn(d["rows"] // parts, d["width"])
    keep = {}

    def hook(n):
        def send(p):
            if parts > 1:
                dist.reduce(p.grad, owner[n])
            if n in held:
                keep[n] = p.grad / parts
            p.grad = None
        return send
    for n, p in params.items():
        p.register_post_accumulate_grad_hook(hook(n))

    def step():
        loss = F.mse_loss(net(clean + noise), clean)
        loss.backward()
        loss = loss.detach().clone()
        if parts > 1:
            dist.all_reduce(loss)
            loss /= parts
        out = {"loss": loss}
        with torch.no_grad():
            for n in held:
                m, u, ema = slots["m." + n], slots["u_sq." + n], slots["ema." + n]
                m.lerp_(keep[n], 1 - B1)
                u.copy_(torch.maximum(u * B2, keep[n].abs() + EPS))
                params[n].sub_(LR / (1 - B1 ** STEP) * m / u)
                ema.mul_(EMA).add_(params[n], alpha=1 - EMA)
                out["grad:" + n] = keep[n]
            if parts > 1:
                for n, p in params.items():
                    dist.broadcast(p, owner[n])
        out.update({"new:" + n: p for n, p in params.items()})
        out.update({"new:" + n: t for n, t in slots.items()})
        return out
    return dict(state={**params, **slots, "clean": clean, "noise": noise}, tokens={}, step=step)


def logical(d):
    return build(d, 1, 0)


def plan(rank, d):
    def place(name, full):
        return full.chunk(WORLD, 0)[rank] if name in ("clean", "noise") else full
    return dict(build(d, WORLD, rank), place=place)
