"""What `opguard prove --rules` runs in Python: each operator that has a meaning, on random float64 numbers, with its gradients.

    python rules.py --out DIR

DIR gets rule-<n>.json, a side's file as capture.py writes it, with what the inputs held ("values") and what torch
computed ("expected"), and rules.json last, their names. The checker computes the same from its meanings.
"""

import argparse
import json
import os
import sys
import types
import warnings

if __name__ == "__main__" and not __package__:
    # Run by its path, as capture.py.
    _here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != _here]
    __package__ = "opguard_prove"
    sys.modules[__package__] = types.ModuleType(__package__)
    sys.modules[__package__].__path__ = [_here]

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

from .recorder import Recorder  # noqa: E402

SIZE = 5  # values that a token may take


def _numbers(*shape, positive=False):
    x = torch.randn(*shape, dtype=torch.float64)
    return x.abs() + 0.25 if positive else x


class Case:
    """Numbers x, y, ... of shapes, tokens i, j, ... of shapes; what is computed of them. Differentiated where it can be."""

    def __init__(self, name, compute, numbers=(), tokens=(), positive=False, gradients=True):
        self.name, self.compute, self.gradients = name, compute, gradients
        self.state = {"xyzuvw"[i]: _numbers(*shape, positive=positive) for i, shape in enumerate(numbers)}
        self.tokens = {"ijk"[i]: torch.randint(0, SIZE, shape) for i, shape in enumerate(tokens)}

    def step(self):
        state = [value.clone().requires_grad_(self.gradients) for value in self.state.values()] if self.gradients else list(self.state.values())
        found = self.compute(*state, *self.tokens.values())
        found = [found] if isinstance(found, torch.Tensor) else list(found)
        outputs = {"out%d" % n: value for n, value in enumerate(found)}
        if self.gradients:
            total = sum((value * (n + 1.5) * value).sum() for n, value in enumerate(found) if value.requires_grad)
            for n, gradient in enumerate(torch.autograd.grad(total, state, allow_unused=True)):
                outputs["grad%d" % n] = gradient
        return {name: value.detach() for name, value in outputs.items() if value is not None}


def _pointwise():
    m = (2, 3)
    yield Case("add, subtract", lambda x, y: (x + y, x - 2 * y, torch.add(x, y, alpha=3), torch.sub(x, y, alpha=0.5), 1 - x), [m, (3,)])
    yield Case("multiply, divide", lambda x, y: (x * y, x / y, x * 0.5, x / 3, 2 / x), [m, m], positive=True)
    yield Case("in place", lambda x, y: x.clone().mul_(2).add_(y, alpha=0.25).sub_(1).div_(4).neg_(), [m, m])
    yield Case("powers", lambda x: (x**2, x**3, x.sqrt(), x.rsqrt(), x.reciprocal(), x.square(), x**-1, x**0.5, x**1.5), [m], positive=True)
    yield Case("exp, log", lambda x: (x.exp(), x.log(), (x * 2).exp().log()), [m], positive=True)
    yield Case("functions", lambda x: (x.sigmoid(), x.tanh(), torch.erf(x), x.sin(), x.cos(), x.abs(), x.sign(), torch.sgn(x)), [m], gradients=False)
    yield Case("sigmoid, tanh, silu", lambda x: (x.sigmoid(), x.tanh(), F.silu(x)), [m])
    yield Case("relu, gelu", lambda x: (F.relu(x), F.gelu(x), F.gelu(x, approximate="tanh")), [m])
    yield Case("lerp, addcmul, addcdiv", lambda x, y, z: (torch.lerp(x, y, 0.1), torch.addcmul(x, y, z, value=2), torch.addcdiv(x, y, z, value=0.5)), [m, m, m], positive=True, gradients=False)
    yield Case("greater and smaller", lambda x, y: (torch.maximum(x, y), torch.minimum(x, y), x.clamp(-0.5, 0.5), x.clamp(min=0.1), x.clamp_min(0)), [m, m], gradients=False)
    yield Case("comparisons", lambda x, y: (x < y, x > y, x <= y, x >= y, (x < y) & (x > 0), (x < y) | (x > 0), ~(x < y)), [m, m], gradients=False)
    yield Case("where, masked_fill", lambda x, y: (torch.where(x < y, x, y), x.masked_fill(y > 0, 0.0)), [m, m], gradients=False)
    yield Case("likes", lambda x: (torch.zeros_like(x) + x, torch.ones_like(x) * x, torch.full_like(x, 2) * x, x.new_zeros(2, 3) + x, x.new_ones(2, 3) * x), [m])
    yield Case("truths", lambda x, i: (torch.logical_and(i > 1, i < 4) * x, torch.logical_or(i < 1, i > 3) * x, torch.logical_xor(i > 1, i > 3) * x, torch.logical_not(i > 1) * x, ((i > 1) ^ (i > 3)) * x), [(4,)], [(4,)], gradients=False)
    yield Case("casts, any", lambda x, i: (i.to(torch.float64) * x, (i > 2).any(1, keepdim=True) * x), [(4, 1)], [(4, 1)], gradients=False)
    yield Case("copies", lambda x, y: (x.clone().copy_(y), x.t().contiguous(), x.to(torch.float64), x.clone().fill_(2) + y, x.clone().zero_() + y), [m, m], gradients=False)


def _reducing():
    m = (2, 3, 4)
    yield Case("sum, mean", lambda x: (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.mean(), x.mean(-1), x.mean((0, 1))), [m])
    yield Case("variance", lambda x: (x.var(), x.var(1), x.var(-1, unbiased=False, keepdim=True), *torch.var_mean(x, 1)), [m])
    yield Case("extremes", lambda x: (x.amax(1), x.amax(), x.amin((0, 1)), x.max(), x.min(), x.max(1).values), [m], gradients=False)
    yield Case("norms", lambda x: (torch.linalg.vector_norm(x), torch.linalg.vector_norm(x, 2, dim=1), torch.linalg.vector_norm(x, 1), torch.linalg.vector_norm(x, float("inf"), dim=0), x.norm()), [m], gradients=False)
    yield Case("prod, cumsum", lambda x: (x.prod(), x.prod(1), x.cumsum(1), x.cumsum(-1)), [m], gradients=False)
    yield Case("products", lambda x, y, z: (x @ y, torch.addmm(z, x, y, beta=0.5, alpha=2), torch.mv(x, y[:, 0]), torch.dot(x[0], y[:, 0])), [(2, 3), (3, 4), (4,)])
    yield Case("batched products", lambda x, y, z: (x @ y, torch.bmm(x, y), torch.baddbmm(z, x, y, beta=2)), [(2, 2, 3), (2, 3, 2), (2, 2, 2)])
    yield Case("linear", lambda x, y, z: F.linear(x, y, z), [(2, 3, 4), (5, 4), (5,)])


def _moving():
    m = (2, 3, 4)
    yield Case("cat, stack", lambda x, y: (torch.cat([x, y], 1), torch.cat([x, y], -1), torch.stack([x, y]), torch.stack([x, y], -1)), [m, m])
    yield Case("parts", lambda x: (x[:, 1:], x[:, ::2], x[0], x.select(2, 1), x.narrow(1, 1, 2), *x.chunk(2, -1), *x.split([1, 3], 2)), [m])
    yield Case("shapes", lambda x: (x.reshape(6, 4) * 2, x.transpose(0, 2).reshape(-1) * 2, x.permute(2, 0, 1) * 2, x.unsqueeze(1).expand(2, 2, 3, 4) * 2, x.flatten() * 2, x.mT * 2), [m])
    yield Case("pad, roll, flip, repeat", lambda x: (F.pad(x, (1, 2)), F.pad(x, (0, 1, 2, 0), value=0.5), F.pad(x, (-1, 1)), x.roll(1, 1), x.roll((1, 2), (0, 2)), x.roll(2), x.flip(1), x.flip((0, 2)), x.repeat(2, 1, 1), x.repeat(2, 1, 2, 1)), [m])
    yield Case("triangles", lambda x: (x.tril(), x.triu(1), x.tril(-1), x.triu(-1)), [m])
    yield Case("repeat_interleave", lambda x: (x.repeat_interleave(2, 1), x.repeat_interleave(2, 0)), [m])


def _indexing():
    w = (SIZE, 3)
    yield Case("embedding", lambda x, i: (F.embedding(i, x), F.embedding(i, x, padding_idx=1)), [w], [(2, 3)])
    yield Case("known indices", lambda x: (x[torch.tensor([2, 0, 2])], x[:, torch.tensor([1, 0])], x[torch.tensor([0, 1]), torch.tensor([2, 2])], x.index_select(1, torch.tensor([2, 2, 0]))), [w])
    yield Case("indices by tokens", lambda x, i: (x[i], x[i, torch.tensor([0, 1, 2])], x[torch.tensor([0, 1, 2]), i % 3]), [w], [(3,)])
    yield Case("gather", lambda x, i: (x.gather(0, i), x.gather(1, (i % 3))), [w], [(2, 3)])
    yield Case("scatter", lambda x, y, i: (x.scatter(0, i, y), x.scatter_add(0, i, y), x.scatter(0, i, 2.0)), [w, (2, 3)], [(2, 3)], gradients=False)
    yield Case("index_put", lambda x, y: (x.index_put((torch.tensor([1, 3]),), y), x.index_put((torch.tensor([1, 1]),), y, accumulate=True)), [w, (2, 3)], gradients=False)
    yield Case("index_put by tokens", lambda x, y, i: x.index_put((i,), y, accumulate=True), [w, (2, 3)], [(2,)], gradients=False)
    yield Case("index_add, index_copy", lambda x, y: (x.index_add(0, torch.tensor([1, 3]), y, alpha=2), x.index_copy(0, torch.tensor([1, 3]), y)), [w, (2, 3)], gradients=False)
    yield Case("masks of tokens", lambda x, i: ((i >= 2) * x, torch.where(i == 1, x, 2 * x), x.masked_fill(i < 3, 0.0), ((i < 1) | (i > 3)) * x, ((i > 1) & (i < 4)) * x, (i != 2) * x, ~(i <= 2) * x, (i // 2) * x, (i % 2) * x, (i - 2).clamp(0, 1) * x), [(4,)], [(4,)], gradients=False)


def _network():
    m = (3, 4)
    yield Case("soft maxima", lambda x: (x.softmax(-1), x.softmax(0), x.log_softmax(-1), torch.logsumexp(x, 1)), [m])
    yield Case("nll_loss", lambda x, i: (F.nll_loss(x, i), F.nll_loss(x, i, reduction="sum"), F.nll_loss(x, i, reduction="none")), [(3, SIZE)], [(3,)])
    yield Case("cross_entropy", lambda x, i: (F.cross_entropy(x, i), F.cross_entropy(x, i, reduction="none")), [(3, SIZE)], [(3,)])
    yield Case("mse_loss", lambda x, y: (F.mse_loss(x, y), F.mse_loss(x, y, reduction="sum"), F.mse_loss(x, y, reduction="none")), [m, m])
    yield Case("layer_norm", lambda x, y, z: (F.layer_norm(x, (4,), y, z), F.layer_norm(x, (4,))), [m, (4,), (4,)])
    yield Case("rms_norm", lambda x, y: (F.rms_norm(x, (4,), y, 1e-5),), [m, (4,)])
    heads = (1, 2, 3, 4)
    yield Case("attention", lambda x, y, z: (F.scaled_dot_product_attention(x, y, z), F.scaled_dot_product_attention(x, y, z, is_causal=True)), [heads, heads, heads])
    yield Case("foreach", lambda x, y: (*torch._foreach_add([x, y], [y, x], alpha=2), *torch._foreach_mul([x, y], 0.5), *torch._foreach_div([x, y], [y, x]), *torch._foreach_lerp([x], [y], 0.1), *torch._foreach_norm([x, y])), [m, m], positive=True, gradients=False)


def cases():
    for family in (_pointwise, _reducing, _moving, _indexing, _network):
        yield from family()


def write(case, path):
    recorder = Recorder()
    inputs = {name: recorder.input(tensor) for name, tensor in {**case.state, **case.tokens}.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        noting = torch.autograd.detect_anomaly(check_nan=False)
    with noting, recorder:
        outputs = case.step()
    found = {"version": 1, "rank": 0, "world": 1, "name": case.name, "tokens": {name: SIZE for name in case.tokens}}
    found["values"] = {name: tensor.detach().reshape(-1).tolist() for name, tensor in {**case.state, **case.tokens}.items()}
    found["expected"] = {name: tensor.detach().double().reshape(-1).tolist() for name, tensor in outputs.items()}
    found.update(stacks=recorder.stacks, constants=recorder.constants, inputs=inputs, nodes=recorder.nodes)
    found["outputs"] = {name: recorder.output(tensor) for name, tensor in outputs.items()}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, allow_nan=False, separators=(",", ":"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    names = []
    for case in cases():
        write(case, os.path.join(asked.out, "rule-%d.json" % len(names)))
        names.append(case.name)
    with open(os.path.join(asked.out, "rules.json"), "w", encoding="utf-8") as file:
        json.dump({"version": 1, "torch": torch.__version__, "rules": names}, file)


if __name__ == "__main__":
    main()
