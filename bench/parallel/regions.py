"""The functions at whose edges tensor and sequence parallelism begin and end. Dimension 1 is the sequence."""
import torch


class Copy(torch.autograd.Function):
    """The same on every rank; gradients are summed."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return ctx.group.sum(grad.clone()), None


class Reduce(torch.autograd.Function):
    """The sum of what the ranks have; its gradient is everybody's."""
    @staticmethod
    def forward(ctx, x, group):
        return group.sum(x.clone())

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class GatherSequence(torch.autograd.Function):
    """The whole sequence of the ranks' parts; gradients are summed, and each rank keeps its part."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return group.gather(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return ctx.group.mine(ctx.group.sum(grad.clone()), 1).contiguous(), None


class ReduceSequence(torch.autograd.Function):
    """The sum of what the ranks have, of which each keeps its part of the sequence."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return group.mine(group.sum(x.clone()), 1).contiguous()

    @staticmethod
    def backward(ctx, grad):
        return ctx.group.gather(grad, 1), None


class GatherThenScatter(torch.autograd.Function):
    """GatherSequence, whose backward pass is one reduce-scatter."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return group.gather(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return ctx.group.sum_mine(grad, 1), None


class ScatterThenGather(torch.autograd.Function):
    """ReduceSequence as one reduce-scatter."""
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return group.sum_mine(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return ctx.group.gather(grad, 1), None


def enter(x, group, sequence):
    if group.size == 1:
        return x
    if sequence and group.scatter:
        return GatherThenScatter.apply(x, group)
    return GatherSequence.apply(x, group) if sequence else Copy.apply(x, group)


def leave(x, group, sequence):
    if group.size == 1:
        return x
    if sequence and group.scatter:
        return ScatterThenGather.apply(x, group)
    return ReduceSequence.apply(x, group) if sequence else Reduce.apply(x, group)
