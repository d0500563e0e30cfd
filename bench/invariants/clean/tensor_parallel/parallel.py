"""Column and row parallel layers; a parameter says by an attribute whether each rank has its own part."""
import torch
import torch.distributed as dist
from torch import nn


class _Copy(torch.autograd.Function):
    """Identity forward, sum of the gradients backward."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        g = g.contiguous()
        dist.all_reduce(g)
        return g


class _Reduce(torch.autograd.Function):
    """Sum forward, identity backward."""

    @staticmethod
    def forward(ctx, x):
        x = x.contiguous().clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g


copy_to_region, reduce_from_region = _Copy.apply, _Reduce.apply


def mark(parameter, split, dim=-1):
    parameter.tensor_model_parallel = split
    parameter.partition_dim = dim
    return parameter


def part_of(full, dim):
    return full.chunk(dist.get_world_size(), dim)[dist.get_rank()].clone()


class ColumnParallelLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        full = torch.randn(o, i) * i**-0.5
        self.weight = mark(nn.Parameter(part_of(full, 0)), True, 0)
        self.bias = mark(nn.Parameter(torch.zeros(o // dist.get_world_size())), True, 0)

    def forward(self, x):
        return nn.functional.linear(copy_to_region(x), self.weight, self.bias)


class RowParallelLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        full = torch.randn(o, i) * i**-0.5
        self.weight = mark(nn.Parameter(part_of(full, 1)), True, 1)
        self.bias = mark(nn.Parameter(torch.zeros(o)), False)

    def forward(self, x):
        return reduce_from_region(nn.functional.linear(x, self.weight)) + self.bias


def clip_grad_norm(parameters, most):
    """The norm of the whole model: a replicated parameter counts once."""
    split, whole = torch.zeros(()), torch.zeros(())
    for p in parameters:
        if getattr(p, "tensor_model_parallel", False):
            split += p.grad.pow(2).sum()
        else:
            whole += p.grad.pow(2).sum()
    dist.all_reduce(split)
    norm = (split + whole).sqrt()
    factor = (most / (norm + 1e-6)).clamp(max=1.0)
    for p in parameters:
        p.grad.mul_(factor)
    return norm
