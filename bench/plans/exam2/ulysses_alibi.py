"""Ulysses: sequence slices outside attention, slices of heads within, an all-to-all each way; ALiBi slopes by head,
grouped queries, learned positions, LayerScale; Adagrad."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

WORLD = 2
DIMS = dict(batch=2, seq=4, heads=4, kv=2, head=2, out=2)
LR, EPS = 0.1, 1e-4


def swap(x, cut, join):
    """Cuts dimension `cut` over the ranks, and joins `join`."""
    sent = [t.contiguous() for t in x.chunk(WORLD, cut)]
    got = [torch.empty_like(t) for t in sent]
    flat = torch.empty(WORLD * sent[0].numel(), dtype=x.dtype)
    dist.all_to_all_single(flat, torch.cat([t.reshape(-1) for t in sent]))
    got = [f.view_as(t) for f, t in zip(flat.chunk(WORLD), sent)]
    return torch.cat(got, join)


class Swap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, cut, join):
        ctx.dims = cut, join
        return swap(x, cut, join)

    @staticmethod
    def backward(ctx, g):
        cut, join = ctx.dims
        return swap(g, join, cut), None, None


def slopes(heads):
    return torch.tensor([2.0 ** -(i + 1) for i in range(heads)])


def build(d, parts, rank):
    b, s, hd = d["batch"], d["seq"] // parts, d["head"]
    heads, kv, w = d["heads"], d["kv"], d["heads"] * d["head"]
    shapes = dict(inp=(w, 3), norm_w=(w,), norm_b=(w,), wq=(w, w), wkv=(2 * kv * hd, w), wo=(w, w), layer_scale=(w,),
                  out_w=(d["out"], w), out_b=(d["out"],))
    p = {n: torch.randn(t, requires_grad=True) for n, t in shapes.items()}
    pos_emb = torch.randn(s, w, requires_grad=True)
    acc = {"acc_sq." + n: torch.ones(t) for n, t in shapes.items()}
    x, target = torch.randn(b, s, 3), torch.randn(b, s, d["out"])
    slope = slopes(heads).chunk(parts)[rank]

    def attention(q, k, v):
        # [batch, sequence, heads, head]
        if parts > 1:
            q, k, v = (Swap.apply(t, 2, 1) for t in (q, k, v))
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        each = q.shape[1] // k.shape[1]
        k, v = (t[:, :, None].expand(-1, -1, each, -1, -1).reshape(b, -1, d["seq"], hd) for t in (k, v))
        distance = torch.arange(d["seq"])[None, :] - torch.arange(d["seq"])[:, None]
        bias = slope[:, None, None] * distance
        bias = bias.masked_fill(distance > 0, float("-inf"))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias[None].to(q.dtype))
        y = y.transpose(1, 2)
        if parts > 1:
            y = Swap.apply(y, 1, 2)
        return y.reshape(b, s, -1)

    def step():
        y = F.linear(x, p["inp"]) + pos_emb
        h = F.layer_norm(y, (w,), p["norm_w"], p["norm_b"])
        q = F.linear(h, p["wq"]).view(b, s, heads, hd)
        k, v = F.linear(h, p["wkv"]).view(b, s, 2, kv, hd).unbind(2)
        y = y + p["layer_scale"] * F.linear(attention(q, k, v), p["wo"])
        y = F.linear(y, p["out_w"], p["out_b"])
        loss = (y - target).square().mean()
        loss.backward()
        loss = loss.detach().clone()
        out = {}
        if parts > 1:
            dist.all_reduce(loss)
            loss /= parts
            pos_emb.grad /= parts
            for t in p.values():
                dist.all_reduce(t.grad)
                t.grad /= parts
        with torch.no_grad():
            for n, t in p.items():
                a = acc["acc_sq." + n]
                a.addcmul_(t.grad, t.grad)
                t.addcdiv_(t.grad, a.sqrt() + EPS, value=-LR)
                out.update({"grad:" + n: t.grad, "new:" + n: t, "new:acc_sq." + n: a})
        return {"loss": loss, "grad:pos_emb": pos_emb.grad, **out}
    return dict(state={**p, **acc, "pos_emb": pos_emb, "x": x, "target": target}, tokens={}, step=step)


def logical(d):
    return build(d, 1, 0)


def plan(rank, d):
    def place(name, full):
        if name == "pos_emb":
            return full.chunk(WORLD, 0)[rank]
        return full.chunk(WORLD, 1)[rank] if name in ("x", "target") else full
    return dict(build(d, WORLD, rank), place=place)
