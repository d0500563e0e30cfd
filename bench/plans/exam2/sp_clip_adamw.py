"""Sequence parallel (Megatron's): layer norms on slices of the sequence, reduce-scatter out of row-parallel layers,
clipping by the global norm, AdamW by hand."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

WORLD = 2
DIMS = dict(seq=4, batch=2, hidden=4, inner=4, layers=2)
CUT = {"w1": 0, "b1": 0, "w2": 1}
LR, B1, B2, EPS, DECAY, LIMIT, STEP = 0.01, 0.9, 0.95, 1e-5, 0.1, 0.5, 3


def gather(x):
    out = torch.empty(x.shape[0] * WORLD, *x.shape[1:], dtype=x.dtype)
    dist.all_gather_into_tensor(out, x.contiguous())
    return out


def scatter(x):
    out = torch.empty(x.shape[0] // WORLD, *x.shape[1:], dtype=x.dtype)
    dist.reduce_scatter_tensor(out, x.contiguous())
    return out


class Enter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return gather(x)

    @staticmethod
    def backward(ctx, g):
        return scatter(g)


class Leave(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return scatter(x)

    @staticmethod
    def backward(ctx, g):
        return gather(g)


def one(x):
    return x


def build(d, parts):
    h, inner = d["hidden"], d["inner"] // parts
    enter, leave = (Enter.apply, Leave.apply) if parts > 1 else (one, one)
    shapes = {}
    for i in range(d["layers"]):
        shapes.update({f"{i}.lnw": (h,), f"{i}.lnb": (h,), f"{i}.w1": (inner, h), f"{i}.b1": (inner,),
                       f"{i}.w2": (h, inner), f"{i}.b2": (h,)})
    params = {n: torch.randn(s, requires_grad=True) for n, s in shapes.items()}
    first = {"m." + n: torch.zeros(s) for n, s in shapes.items()}
    second = {"v_sq." + n: torch.ones(s) for n, s in shapes.items()}
    x = torch.randn(d["seq"] // parts, d["batch"], h)
    target = torch.randn(d["seq"] // parts, d["batch"], h)

    def sharded(name):
        return name.split(".")[-1] in CUT

    def step():
        y = x
        for i in range(d["layers"]):
            p = {n: params[f"{i}.{n}"] for n in ("lnw", "lnb", "w1", "b1", "w2", "b2")}
            z = F.layer_norm(y, (h,), p["lnw"], p["lnb"])
            z = enter(z)
            z = F.gelu(F.linear(z, p["w1"], p["b1"]))
            z = leave(F.linear(z, p["w2"]))
            y = y + z + p["b2"]
        loss = (y - target).square().sum() / (d["seq"] * d["batch"] * h)
        loss.backward()
        loss = loss.detach()
        if parts > 1:
            dist.all_reduce(loss)
            for n, t in params.items():
                if not sharded(n):
                    dist.all_reduce(t.grad)
        own = sum(t.grad.square().sum() for n, t in params.items() if sharded(n))
        if parts > 1:
            dist.all_reduce(own)
        rest = sum(t.grad.square().sum() for n, t in params.items() if not sharded(n))
        norm = (own + rest).sqrt()
        scale = torch.clamp(LIMIT / (norm + 1e-6), max=1.0)
        out = {"loss": loss, "norm": norm}
        with torch.no_grad():
            for n, t in params.items():
                g = t.grad * scale
                out["grad:" + n] = g
                m, v = first["m." + n], second["v_sq." + n]
                t.mul_(1 - LR * DECAY)
                m.mul_(B1).add_(g, alpha=1 - B1)
                v.mul_(B2).addcmul_(g, g, value=1 - B2)
                top = m / (1 - B1 ** STEP)
                bottom = (v / (1 - B2 ** STEP)).sqrt() + EPS
                t.sub_(LR * top / bottom)
                out["new:" + n] = t
                out["new:m." + n] = m
                out["new:v_sq." + n] = v
        return out
    return dict(state={**params, **first, **second, "x": x, "target": target}, tokens={}, step=step)


def logical(d):
    return build(d, 1)


def plan(rank, d):
    def place(name, full):
        if name in ("x", "target"):
            return full.chunk(WORLD, 0)[rank]
        last = name.split(".")[-1]
        return full.chunk(WORLD, CUT[last])[rank] if last in CUT else full
    return dict(build(d, WORLD), place=place)
