"""Context parallel: each rank has an early and a late slice of the sequence; keys and values are gathered, put in order
and masked by position; rotary by position; next-token loss whose labels cross the slices."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

WORLD = 2
DIMS = dict(batch=2, seq=8, vocab=4, heads=2, head=4, inner=4)


def mine(rank, full, dim):
    parts = full.chunk(2 * WORLD, dim)
    return torch.cat([parts[rank], parts[2 * WORLD - 1 - rank]], dim)


class GatherSequence(torch.autograd.Function):
    """From slices in zigzag order to the whole sequence (dimension 2); gradients are summed and cut again."""
    @staticmethod
    def forward(ctx, x, rank):
        ctx.rank = rank
        parts = [torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(WORLD)]
        dist.all_gather(parts, x.contiguous())
        early = [p.chunk(2, 2)[0] for p in parts]
        late = [p.chunk(2, 2)[1] for p in parts]
        return torch.cat(early + late[::-1], 2)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous().clone()
        dist.all_reduce(g)
        return mine(ctx.rank, g, 2), None


def rotary(x, positions):
    half = x.shape[-1] // 2
    angle = positions[:, None] * (10000.0 ** (-torch.arange(half) / half))[None]
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def build(d, cut, gather, parts):
    w = d["heads"] * d["head"]
    seq = d["seq"] // parts
    shapes = dict(emb=(d["vocab"], w), norm1=(w,), wq=(w, w), wk=(w, w), wv=(w, w), wo=(w, w), norm2=(w,),
                  w1=(d["inner"], w), w2=(w, d["inner"]), norm3=(w,), head=(d["vocab"], w))
    p = {n: torch.randn(s, requires_grad=True) for n, s in shapes.items()}
    ids = torch.zeros(d["batch"], seq, dtype=torch.long)
    labels = torch.zeros(d["batch"], seq, dtype=torch.long)
    positions = cut(torch.arange(d["seq"]), 0)
    every = torch.arange(d["seq"])

    def rms(x, weight):
        return F.rms_norm(x, (w,), weight, 1e-6)

    def split(x):
        return x.view(d["batch"], seq, d["heads"], d["head"]).transpose(1, 2)

    def step():
        x = F.embedding(ids, p["emb"])
        h = rms(x, p["norm1"])
        q, k, v = (split(h @ p[n].t()) for n in ("wq", "wk", "wv"))
        q, k = rotary(q, positions), rotary(k, positions)
        k, v = gather(k), gather(v)
        scores = q @ k.transpose(-1, -2) / d["head"] ** 0.5
        allowed = positions[:, None] >= every[None, :]
        scores = torch.where(allowed, scores, torch.tensor(float("-inf")))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(d["batch"], seq, w)
        x = x + y @ p["wo"].t()
        x = x + F.relu(rms(x, p["norm2"]) @ p["w1"].t()).square() @ p["w2"].t()
        logits = rms(x, p["norm3"]) @ p["head"].t()
        losses = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(d["batch"], seq)
        valid = (positions < d["seq"] - 1).to(losses.dtype)  # nothing follows the last token
        loss = (losses * valid).sum() / (d["batch"] * (d["seq"] - 1))
        loss.backward()
        loss = loss.detach().clone()
        if parts > 1:
            dist.all_reduce(loss)
            for t in p.values():
                dist.all_reduce(t.grad)
        return {"loss": loss, **{"grad:" + n: t.grad for n, t in p.items()}}
    return dict(state=p, tokens={"ids": ids, "labels": labels}, step=step)


def logical(d):
    return build(d, lambda full, dim: full, lambda x: x, 1)


def plan(rank, d):
    def place(name, full):
        return mine(rank, full, 1) if name in ("ids", "labels") else full
    return dict(build(d, lambda full, dim: mine(rank, full, dim), lambda x: GatherSequence.apply(x, rank), WORLD), place=place)
