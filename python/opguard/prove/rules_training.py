"""Cases of rules.py: lists of tensors, fused optimizers, the scale of a loss.

    Case("fused AdamW", _fused(o.AdamW, lr=0.1, weight_decay=0.2), [M, M])      two steps, with gradients given

Compared are the weights and what the optimizer keeps of each (momentum, squares). Two steps, so that a first step's
special case is left."""

import torch

from .rules_case import Case

A = torch.ops.aten
M = (3, 4)


def _lists():
    yield Case("foreach", lambda x, y: (*torch._foreach_add([x, y], [y, x], alpha=2), *torch._foreach_mul([x, y], 0.5), *torch._foreach_div([x, y], [y, x]), *torch._foreach_lerp([x], [y], 0.1), *torch._foreach_norm([x, y]), *torch._foreach_norm([x, y], 1), *torch._foreach_sqrt([x, y]), *torch._foreach_pow([x, y], 2), *torch._foreach_maximum([x, y], 0.7), *torch._foreach_sub([x, y], [1.0, 2.0])), [M, M], positive=True, gradients=False)
    yield Case("foreach, more", lambda x, y: (*torch._foreach_addcmul([x, y], [y, x], [x, x], 0.5), *torch._foreach_addcdiv([x, y], [y, x], [x, x], [0.5, 2.0]), *torch._foreach_addcdiv([x, y], [y, x], [x, x], torch.tensor([0.5, 2.0])), *torch._foreach_clamp_min([x, y], 0.6), *torch._foreach_neg([x]), *torch._foreach_pow(2.0, [x, y]), *torch._foreach_max([x, y])), [M, M], positive=True, gradients=False)
    yield Case("foreach in place", lambda x, y: _in_place([x.clone(), y.clone()], [y, x]), [M, M], gradients=False)


def _in_place(ours, theirs):
    """Each operator writes a list of tensors; what they leave is the result."""
    torch._foreach_mul_(ours, 0.5)
    torch._foreach_add_(ours, theirs, alpha=0.1)
    torch._foreach_addcmul_(ours, theirs, theirs, 2.0)
    more = [torch.zeros_like(tensor) for tensor in ours]
    torch._foreach_copy_(more, ours)
    torch._foreach_zero_(theirs_copy := [tensor.clone() for tensor in theirs])
    return ours + more + theirs_copy


def _fused(optimizer, steps=2, **how):
    """step(x, y): two weights, whose gradients are made of the other input: no backward pass is needed."""

    def step(x, y):
        weights = [x.clone().requires_grad_(), y.clone().requires_grad_()]
        by = optimizer(weights, fused=True, **how)
        for n in range(steps):
            for weight, other in zip(weights, (y, x)):
                weight.grad = other * (n + 1.5) + weight.detach()
            by.step()
        kept = [value for weight in weights for value in by.state[weight].values() if torch.is_tensor(value) and value.dim()]
        return weights + kept

    return step


def _optimizers():
    o = torch.optim
    yield Case("fused Adam", _fused(o.Adam, lr=0.1, weight_decay=0.2), [M, M], gradients=False)
    yield Case("fused Adam, amsgrad", _fused(o.Adam, lr=0.1, betas=(0.8, 0.9), amsgrad=True, maximize=True), [M, M], gradients=False)
    yield Case("fused AdamW", _fused(o.AdamW, lr=0.1, weight_decay=0.2), [M, M], gradients=False)
    yield Case("fused SGD", _fused(o.SGD, lr=0.1), [M, M], gradients=False)
    yield Case("fused SGD, momentum", _fused(o.SGD, lr=0.1, momentum=0.9, dampening=0.25, weight_decay=0.1), [M, M], gradients=False)
    yield Case("fused SGD, Nesterov", _fused(o.SGD, lr=0.1, momentum=0.9, nesterov=True, maximize=True), [M, M], gradients=False)
    yield Case("fused Adagrad", _fused(o.Adagrad, lr=0.1, lr_decay=0.5, weight_decay=0.1), [M, M], gradients=False)
    yield Case("a tensor for a rate", _fused(o.Adam, lr=torch.tensor(0.1, dtype=torch.float64)), [M, M], gradients=False)


def _scaled(x, y):
    """What GradScaler calls: unscaled gradients, a scale that grows, and a fused step that divides by it."""
    gradients, found = [x.clone(), y.clone()], torch.zeros(1)
    A._amp_foreach_non_finite_check_and_unscale_(gradients, found, torch.full((1,), 0.25))
    scale, tracker = torch.full((1,), 4.0, dtype=torch.float32), torch.zeros(1, dtype=torch.int32)
    for _ in range(3):
        A._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 2)
    weights, given = [x.clone()], [y.clone()]
    A._fused_sgd_(weights, given, [], weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0, nesterov=False, maximize=False, is_first_step=True, grad_scale=torch.tensor(4.0), found_inf=found)
    return gradients + [found * x, scale * x, tracker * x] + weights + given


def cases():
    yield from _lists()
    yield from _optimizers()
    yield Case("the scale of a loss", _scaled, [M, M], gradients=False)
