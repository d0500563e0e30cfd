"""Expert parallel times data parallel: four experts on two ranks, tokens routed by their place in the sequence and
weighed by a softmax gate, an all-to-all there and back; expert gradients are summed over replicas of an expert only."""
import torch
import torch.distributed as dist
import torch.nn.functional as F

WORLD = ("edp", "ep")
DIMS = dict(edp=2, ep=2, batch=8, seq=4, width=3, inner=2, experts=4)
AUX = 0.1


class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        dist.all_to_all_single(out, x.contiguous(), group=group)
        return out

    @staticmethod
    def backward(ctx, g):
        out = torch.empty_like(g, memory_format=torch.contiguous_format)
        dist.all_to_all_single(out, g.contiguous(), group=ctx.group)
        return out, None


class SumAll(torch.autograd.Function):
    """Sums over all ranks, and again in the backward pass: each rank's loss uses the sum."""
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


class Single:
    ranks, ep, index = 1, 1, 0

    def exchange(self, x):
        return x

    def total(self, x):
        return x


class Many:
    def __init__(self, d, rank):
        e, r = d["ep"], d["edp"]
        ep_groups = [dist.new_group([i * e + j for j in range(e)]) for i in range(r)]
        replica_groups = [dist.new_group([i * e + j for i in range(r)]) for j in range(e)]
        self.group, self.replicas = ep_groups[rank // e], replica_groups[rank % e]
        self.ranks, self.ep, self.index = e * r, e, rank % e

    def exchange(self, x):
        return Exchange.apply(x, self.group)

    def total(self, x):
        return SumAll.apply(x)


def build(d, at):
    b, s, w, inner = d["batch"] // at.ranks, d["seq"], d["width"], d["inner"]
    local = d["experts"] // at.ep
    dense = {n: torch.randn(t, requires_grad=True) for n, t in
             dict(pre=(w, w), router=(d["experts"], w), shared=(w, w), norm=(w,)).items()}
    experts = {n: torch.randn(t, requires_grad=True) for n, t in
               dict(up=(local, w, inner), bias=(local, 1, inner), down=(local, inner, w)).items()}
    x, target = torch.randn(b, s, w), torch.randn(b, s, w)
    route = [(3 * i + 1) % d["experts"] for i in range(s)]  # the expert of each place
    order = sorted(range(s), key=lambda i: route[i])
    back = [order.index(i) for i in range(s)]
    each = s // d["experts"]

    def run_experts(t):
        # [experts, tokens of one, width], by expert
        t = t.reshape(at.ep, local, -1, w)
        t = at.exchange(t)                                  # [source rank, local expert, tokens, width]
        t = t.transpose(0, 1).reshape(local, -1, w)
        t = torch.baddbmm(experts["bias"], t, experts["up"])
        t = torch.bmm(F.gelu(t), experts["down"])
        t = t.view(local, at.ep, -1, w).transpose(0, 1)
        t = at.exchange(t)
        return t.reshape(d["experts"], -1, w)

    def step():
        h = F.rms_norm(x @ dense["pre"], (w,), dense["norm"], 1e-5)
        gates = (h @ dense["router"].t()).softmax(-1)
        weight = torch.stack([gates[:, i, route[i]] for i in range(s)], 1)
        t = torch.stack([h[:, i] for i in order], 0).reshape(d["experts"], each * b, w)
        t = run_experts(t).reshape(s, b, w)
        y = torch.stack([t[back[i]] for i in range(s)], 1)
        y = h + weight[..., None] * y + F.silu(h @ dense["shared"])
        # load balance: over the whole batch
        share = at.total(gates.sum((0, 1))) / (d["batch"] * s)
        aux = d["experts"] * share.square().sum()
        loss = (y - target).square().mean() + AUX * aux
        loss.backward()
        loss = loss.detach().clone()
        if at.ranks > 1:
            dist.all_reduce(loss)
            loss /= at.ranks
            for t in dense.values():
                dist.all_reduce(t.grad)
                t.grad /= at.ranks
            for t in experts.values():
                dist.all_reduce(t.grad, group=at.replicas)
                t.grad /= at.ranks
        return {"loss": loss, **{"grad:" + n: t.grad for n, t in {**dense, **experts}.items()}}
    return dict(state={**dense, **experts, "x": x, "target": target}, tokens={}, step=step)


def logical(d):
    return build(d, Single())


def plan(rank, d):
    at = Many(d, rank)

    def place(name, full):
        if name in ("x", "target"):
            return full.chunk(at.ranks, 0)[rank]
        if name in ("up", "bias", "down"):
            return full.chunk(at.ep, 0)[at.index]
        return full
    return dict(build(d, at), place=place)
