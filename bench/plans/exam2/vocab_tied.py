"""Vocabulary parallel: embedding and cross entropy on slices of the vocabulary, padded to a multiple; the head is the
embedding; z-loss; ignored labels by mask; SGD with dampened momentum."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

WORLD = 3
DIMS = dict(batch=2, seq=3, vocab=7, width=4)
LR, MOMENTUM, DAMPENING, Z = 0.1, 0.9, 0.2, 0.01


def padded(d):
    return -(-d["vocab"] // WORLD) * WORLD


def total(x, op=dist.ReduceOp.SUM):
    x = x.contiguous().clone()
    dist.all_reduce(x, op=op)
    return x


class Into(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return total(g)


class Out(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return total(x)

    @staticmethod
    def backward(ctx, g):
        return g


class ParallelEntropy(torch.autograd.Function):
    """Cross entropy and the square of the log of the denominator, of logits that lie on all ranks."""
    @staticmethod
    def forward(ctx, logits, labels, start):
        top = total(logits.amax(-1), dist.ReduceOp.MAX)
        exp = (logits - top[..., None]).exp()
        denominator = total(exp.sum(-1))
        end = start + logits.shape[-1]
        inside = (labels >= start) & (labels < end)
        local = torch.where(inside, labels - start, 0)
        picked = logits.gather(-1, local[..., None])[..., 0]
        picked = total(torch.where(inside, picked, 0.0))
        log = denominator.log() + top
        ctx.save_for_backward(exp / denominator[..., None], local, inside, log)
        return log - picked, log.square()

    @staticmethod
    def backward(ctx, g, gz):
        soft, local, inside, log = ctx.saved_tensors
        grad = soft * (g + 2 * log * gz)[..., None]
        hit = torch.where(inside, -g, 0.0)
        return grad.scatter_add(-1, local[..., None], hit[..., None]), None, None


def body(x, p):
    w = x.shape[-1]
    h = F.layer_norm(x, (w,), p["norm"], None)
    return x + torch.tanh(h @ p["fc"].t() + p["bias"])


def build(d, vocab, embed, losses):
    w = d["width"]
    shapes = dict(emb=(vocab, w), norm=(w,), fc=(w, w), bias=(w,))
    p = {n: torch.randn(t, requires_grad=True) for n, t in shapes.items()}
    m = {"m." + n: torch.zeros(t) for n, t in shapes.items()}
    ids = torch.zeros(d["batch"], d["seq"], dtype=torch.long)
    labels = torch.zeros(d["batch"], d["seq"], dtype=torch.long)
    mask = torch.rand(d["batch"], d["seq"])

    def step():
        x = body(embed(ids, p["emb"]), p)
        nll, z = losses(x, p["emb"], labels)
        loss = ((nll + Z * z) * mask).sum() / mask.sum()
        loss.backward()
        out = {"loss": loss}
        with torch.no_grad():
            for n, t in p.items():
                out["grad:" + n] = t.grad
                m["m." + n].mul_(MOMENTUM).add_(t.grad, alpha=1 - DAMPENING)
                t.sub_(LR * m["m." + n])
                out["new:" + n], out["new:m." + n] = t, m["m." + n]
        return out
    return dict(state={**p, **m, "pos_mask": mask}, tokens={"ids": ids, "labels": labels}, step=step)


def logical(d):
    def losses(x, emb, labels):
        logits = (x @ emb.t())[..., :d["vocab"]]
        log = logits.logsumexp(-1)
        return log - logits.gather(-1, labels[..., None])[..., 0], log.square()
    return build(d, padded(d), lambda ids, emb: F.embedding(ids, emb), losses)


def plan(rank, d):
    size = padded(d) // WORLD
    start = rank * size
    real = min(size, d["vocab"] - start)  # rows that are no padding

    def embed(ids, emb):
        outside = (ids < start) | (ids >= start + size)
        local = (ids - start).masked_fill(outside, 0)
        x = F.embedding(local, emb)
        x = x.masked_fill(outside[..., None], 0.0)
        return Out.apply(x)

    def losses(x, emb, labels):
        logits = (Into.apply(x) @ emb.t())[..., :real]
        return ParallelEntropy.apply(logits, labels, start)

    def place(name, full):
        return full.chunk(WORLD, 0)[rank] if name in ("emb", "m.emb") else full
    return dict(build(d, size, embed, losses), place=place)
