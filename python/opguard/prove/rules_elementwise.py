"""Cases of rules.py: element by element, and activations.

    Case("elu, celu, selu", ..., [M])      x of [2, 3]; an output for each of them, and one for elu in place

Where an operator is a question (`x < y`, rounding, signs) there is no gradient to compare. Tokens are whole numbers: of
them floor, ceil and the like are known for each value."""

import math

import torch
import torch.nn.functional as F

from .rules_case import Case

A = torch.ops.aten
M = (2, 3)  # the shape of most inputs


def _arithmetic():
    yield Case("add, subtract", lambda x, y: (x + y, x - 2 * y, torch.add(x, y, alpha=3), torch.sub(x, y, alpha=0.5), 1 - x, torch.rsub(x, y, alpha=2)), [M, (3,)])
    yield Case("multiply, divide", lambda x, y: (x * y, x / y, x * 0.5, x / 3, 2 / x), [M, M], positive=True)
    yield Case("in place", lambda x, y: x.clone().mul_(2).add_(y, alpha=0.25).sub_(1).div_(4).neg_(), [M, M])
    yield Case("powers", lambda x: (x**2, x**3, x.sqrt(), x.rsqrt(), x.reciprocal(), x.square(), x**-1, x**0.5, x**1.5, 2**x, 0.5**x), [M], positive=True)
    yield Case("lerp, addcmul, addcdiv", lambda x, y, z: (torch.lerp(x, y, 0.1), torch.lerp(x, y, z), torch.addcmul(x, y, z, value=2), torch.addcdiv(x, y, z, value=0.5)), [M, M, M], positive=True)
    yield Case("logarithms of sums", lambda x, y: (torch.logaddexp(x, y), torch.logaddexp2(x, y), torch.hypot(x, y)), [M, M])
    yield Case("xlogy", lambda x, y: (torch.xlogy(x, y), torch.special.xlog1py(x, y)), [M, M], positive=True)
    yield Case("copies", lambda x, y: (x.clone().copy_(y), x.t().contiguous(), x.to(torch.float64), x.clone().fill_(2) + y, x.clone().zero_() + y, A.copy(x, y)), [M, M], gradients=False)
    yield Case("likes", lambda x: (torch.zeros_like(x) + x, torch.ones_like(x) * x, torch.full_like(x, 2) * x, x.new_zeros(2, 3) + x, x.new_ones(2, 3) * x, x.new_full((2, 3), 0.5) * x), [M])


def _inference(x, y):
    """Composite operators, which autograd does not take apart here."""
    with torch.inference_mode():
        return x.square(), x.reshape(3, 2).contiguous(), F.linear(x, y), torch.matmul(x, y.t()), F.layer_norm(x, (3,))


def _functions():
    yield Case("exp, log", lambda x: (x.exp(), x.log(), (x * 2).exp().log(), x.log2(), x.log10(), x.log1p(), x.expm1(), x.exp2()), [M], positive=True)
    yield Case("functions", lambda x: (torch.erf(x), x.sin(), x.cos(), x.tan(), x.abs(), torch.erfc(x), x.tanh()), [M])
    yield Case("signs", lambda x, y: (x.sign(), torch.sgn(x), torch.copysign(x, y), torch.heaviside(x, y)), [M, M], gradients=False)
    yield Case("arcs", lambda x: (torch.tanh(x).asin(), torch.tanh(x).acos(), x.atan(), torch.tanh(x).atanh(), x.asinh(), (x.square() + 1.5).acosh()), [M])
    yield Case("hyperbolic", lambda x: (x.sinh(), x.cosh(), torch.sinc(x), torch.deg2rad(x), torch.rad2deg(x)), [M])
    yield Case("atan2", torch.atan2, [M, M])
    yield Case("of probabilities", lambda x: (x.sigmoid().logit(), x.sigmoid().logit(eps=0.3), torch.special.entr(x.sigmoid())), [M])
    yield Case("erfinv, gammas", lambda x: (torch.erfinv(torch.tanh(x)), torch.lgamma(x)), [M], positive=True)
    yield Case("digamma", torch.digamma, [M], positive=True, gradients=False)
    yield Case("inference", _inference, [M, M], gradients=False)


def _questions():
    yield Case("greater and smaller", lambda x, y: (torch.maximum(x, y), torch.minimum(x, y), x.clamp(-0.5, 0.5), x.clamp(min=0.1), x.clamp_min(0), x.clamp_max(0.3), x.clamp(max=0.2), torch.fmax(x, y), torch.fmin(x, y), torch.clamp(x, y, y + 1)), [M, M])
    yield Case("comparisons", lambda x, y: (x < y, x > y, x <= y, x >= y, (x < y) & (x > 0), (x < y) | (x > 0), ~(x < y), (x < y) ^ (x > 0), x == y, x != y, x == x, (x < y).logical_not()), [M, M], gradients=False)
    yield Case("what is no number", lambda x: (torch.isnan(x), torch.isinf(x), torch.isfinite(x), torch.isposinf(x), torch.isneginf(x), torch.nan_to_num(x), x < math.inf, x > math.inf, x == math.inf, A.isposinf(x), A.isneginf(x)), [M], gradients=False)
    yield Case("where, masked_fill", lambda x, y: (torch.where(x < y, x, y), x.masked_fill(y > 0, 0.0)), [M, M])
    yield Case("truths", lambda x, i: (torch.logical_and(i > 1, i < 4) * x, torch.logical_or(i < 1, i > 3) * x, torch.logical_xor(i > 1, i > 3) * x, torch.logical_not(i > 1) * x, ((i > 1) ^ (i > 3)) * x, (i > 1).to(torch.float64) * x, i.bool() * x), [(4,)], [(4,)], gradients=False)
    yield Case("truths of values", lambda x, y: (torch.logical_and(x > 0, y > x), torch.logical_or(x > 0, y > x), torch.logical_xor(x > 0, y), (x > 0).any(), (x > 0).all(1), (x > y).all(), x.bool(), (x > 0).any(0, keepdim=True), torch.count_nonzero(x > 0), torch.count_nonzero(x > y, 1)), [M, M], gradients=False)
    yield Case("bits", lambda x, i: ((i & 6) * x, (i | 2) * x, (i ^ 3) * x, (~i) * x, (i << 2) * x, (i >> 1) * x, torch.bitwise_left_shift(i, 1) * x, torch.bitwise_right_shift(i, 1) * x), [(4,)], [(4,)], gradients=False)
    yield Case("rounded tokens", lambda x, i: ((i / 2).floor() * x, (i / 2).ceil() * x, (i / 2 - 1.25).trunc() * x, (i / 2).round() * x, (i / 2 - 1).frac() * x, (i // 2) * x, (i % 3) * x, torch.fmod(i - 3, 2) * x, torch.remainder(i - 3, 2) * x, torch.div(i - 3, 2, rounding_mode="trunc") * x, A.floor_divide(i, 2) * x), [(4,)], [(4,)], gradients=False)
    yield Case("masks of tokens", lambda x, i: ((i >= 2) * x, torch.where(i == 1, x, 2 * x), x.masked_fill(i < 3, 0.0), ((i < 1) | (i > 3)) * x, ((i > 1) & (i < 4)) * x, (i != 2) * x, ~(i <= 2) * x, (i - 2).clamp(0, 1) * x, (i - 2).abs() * x, (i - 2).sign() * x, F.relu(i - 2) * x), [(4,)], [(4,)], gradients=False)


def _activations():
    yield Case("sigmoid, tanh, silu", lambda x: (x.sigmoid(), x.tanh(), F.silu(x)), [M])
    yield Case("relu, gelu", lambda x: (F.relu(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.threshold(x, 0.1, 0.2), F.relu6(x * 6)), [M])
    yield Case("elu, celu, selu", lambda x: (F.elu(x, 0.7), F.celu(x, 1.3), F.selu(x), F.elu(x.clone(), 0.5, inplace=True)), [M])
    yield Case("leaky_relu, prelu", lambda x, y: (F.leaky_relu(x, 0.2), F.prelu(x, y), F.rrelu(x, 0.1, 0.3), A.rrelu_with_noise(x, torch.ones(2, 3, dtype=torch.float64), 0.1, 0.3, False)), [M, (1,)])
    yield Case("rrelu backward", lambda x, y: A.rrelu_with_noise_backward(x, y, torch.ones(2, 3, dtype=torch.float64), 0.1, 0.3, False, False), [M, M], gradients=False)
    yield Case("hardtanh, hardswish", lambda x: (F.hardtanh(x, -0.5, 0.7), F.hardswish(3 * x)), [M])
    yield Case("hardsigmoid", lambda x: F.hardsigmoid(3 * x), [M], near=1e-7)  # ATen has 1/6 as a float32
    yield Case("softplus, mish, logsigmoid", lambda x: (F.softplus(x), F.softplus(x, beta=2), F.mish(x), F.logsigmoid(x)), [M])
    yield Case("glu", lambda x: (F.glu(x), F.glu(x, 0)), [(2, 4)])
    yield Case("shrinking", lambda x: (F.softshrink(x, 0.3), F.hardshrink(x, 0.4), F.tanhshrink(x), F.softsign(x)), [M])
    yield Case("dropout of nothing", lambda x: (A.native_dropout(x, 0.0, True)[0], A.native_dropout(x, 0.5, False)[0], F.dropout(x, 0.0), F.dropout(x, 1.0)), [M])
    yield Case("dropout backward", lambda x, y: A.native_dropout_backward(x, y > 0, 2.0), [M, M], gradients=False)


def cases():
    for family in (_arithmetic, _functions, _questions, _activations):
        yield from family()
