"""A mixture of experts, one for each token. Under expert parallelism tokens go to the rank that has it, and back."""
import torch
import torch.distributed as dist
import torch.nn.functional as F
from layers import draw, parameter
from torch import nn


class Exchange(torch.autograd.Function):
    """Rows to and from every rank: `sent` of them to each, `received` from each."""
    @staticmethod
    def forward(ctx, x, sent, received, group):
        ctx.back = (received, sent, group)
        return exchange(x, sent, received, group)

    @staticmethod
    def backward(ctx, grad):
        return exchange(grad, *ctx.back), None, None, None


def exchange(x, sent, received, group):
    if group.size == 1:
        return x.clone()
    out = x.new_empty(sum(received), *x.shape[1:])
    dist.all_to_all_single(out, x.contiguous(), received, sent, group=group.handle)
    return out


class Experts(nn.Module):
    def __init__(self, name, dim, hidden, count, group):
        super().__init__()
        self.group, self.count, self.here = group, count, count // group.size
        self.router = parameter(f"{name}.router", shape=(count, dim))
        first = group.rank * self.here
        self.up = nn.ParameterList(draw(f"{name}.up.{first + i}", hidden, dim) for i in range(self.here))
        self.down = nn.ParameterList(draw(f"{name}.down.{first + i}", dim, hidden) for i in range(self.here))
        for p in [*self.up, *self.down]:
            p.expert = True

    def forward(self, x):
        tokens = x.flatten(0, 1)
        chances = F.softmax(tokens @ self.router.t(), dim=-1)
        weight, chosen = chances.max(-1)
        order = chosen.argsort(stable=True)
        counts = chosen.bincount(minlength=self.count)
        theirs = exchange(counts, [self.here] * self.group.size, [self.here] * self.group.size, self.group).view(self.group.size, self.here)
        sent, received = counts.view(self.group.size, self.here).sum(1).tolist(), theirs.sum(1).tolist()
        arrived = Exchange.apply(tokens[order], sent, received, self.group)
        done = self.apply_experts(arrived, theirs)
        returned = Exchange.apply(done, received, sent, self.group)
        mixed = returned[order.argsort()] * weight[:, None]
        return mixed.view_as(x)

    def apply_experts(self, rows, counts):
        """Rows come by rank, and in each rank's part by expert."""
        parts = list(rows.split(counts.flatten().tolist()))
        for i in range(len(parts)):
            e = i % self.here
            parts[i] = F.silu(parts[i] @ self.up[e].t()) @ self.down[e].t()
        return torch.cat(parts)
