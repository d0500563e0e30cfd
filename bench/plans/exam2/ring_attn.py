"""Ring attention: keys and values travel around, a running maximum and denominator put the blocks together; the backward
pass is autograd's, through the sends. Not causal, with a bias by distance, in a regression net."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

WORLD = 3
DIMS = dict(batch=2, seq=6, heads=2, head=2)


def turn(x, shift):
    """Gives x to the rank `shift` further, and returns what came."""
    rank = dist.get_rank()
    out = torch.empty_like(x)
    ops = [dist.P2POp(dist.isend, x, (rank + shift) % WORLD), dist.P2POp(dist.irecv, out, (rank - shift) % WORLD)]
    for w in dist.batch_isend_irecv(ops):
        w.wait()
    return out


class Turn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return turn(x.contiguous(), 1)

    @staticmethod
    def backward(ctx, g):
        return turn(g.contiguous(), -1)


def bias(rows, columns):
    return -0.25 * (rows[:, None] - columns[None, :]).abs().to(torch.get_default_dtype())


def attention(q, k, v, n, rank):
    own = torch.arange(n) + rank * n
    top = total = result = None
    source = rank
    for i in range(WORLD):
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + bias(own, torch.arange(n) + source * n)
        block_top = scores.amax(-1, keepdim=True).detach()
        new_top = block_top if top is None else torch.maximum(top, block_top)
        p = (scores - new_top).exp()
        if top is None:
            total, result = p.sum(-1, keepdim=True), p @ v
        else:
            shrink = (top - new_top).exp()
            total = total * shrink + p.sum(-1, keepdim=True)
            result = result * shrink + p @ v
        top = new_top
        if i < WORLD - 1:
            k, v = Turn.apply(k), Turn.apply(v)
            source = (source - 1) % WORLD
    return result / total


def plain(q, k, v, n, rank):
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + bias(torch.arange(n), torch.arange(n))
    return scores.softmax(-1) @ v


def build(d, parts, rank, attend):
    w, n = d["heads"] * d["head"], d["seq"] // parts
    p = {name: torch.randn(w, w, requires_grad=True) for name in ("q", "k", "v", "o")}
    x, target = torch.randn(d["batch"], n, w), torch.randn(d["batch"], n, w)

    def step():
        q, k, v = ((x @ p[name]).view(d["batch"], n, d["heads"], d["head"]).transpose(1, 2) for name in "qkv")
        y = attend(q, k, v, n, rank).transpose(1, 2).reshape(d["batch"], n, w)
        loss = F.mse_loss(x + y @ p["o"], target) / parts
        loss.backward()
        loss = loss.detach().clone()
        if parts > 1:
            dist.all_reduce(loss)
            for t in p.values():
                dist.all_reduce(t.grad)
        return {"loss": loss, **{"grad:" + name: t.grad for name, t in p.items()}}
    return dict(state={**p, "x": x, "target": target}, tokens={}, step=step)


def logical(d):
    return build(d, 1, 0, plain)


def plan(rank, d):
    def place(name, full):
        return full.chunk(WORLD, 1)[rank] if name in ("x", "target") else full
    return dict(build(d, WORLD, rank, attention), place=place)
