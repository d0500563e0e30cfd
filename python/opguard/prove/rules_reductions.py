"""Cases of rules.py: sums, norms, orders, products of matrices.

    Case("orders by a token", lambda x, i: (shifted(i).sort(-1).values * x, ...), ...)      known for each i

An order of random numbers is no number that can be compared: the checker takes it as unknown. So orders are asked of
values that depend on a token, or on nothing."""

import math

import torch
import torch.nn.functional as F

from .rules_case import Case

A = torch.ops.aten
M = (2, 3, 4)


def _reducing():
    yield Case("sum, mean", lambda x: (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.mean(), x.mean(-1), x.mean((0, 1)), x.nansum(1), x.nanmean()), [M])
    yield Case("variance", lambda x: (x.var(), x.var(1), x.var(-1, unbiased=False, keepdim=True), *torch.var_mean(x, 1), x.var(1, correction=0), x.var(1, correction=0.5)), [M])
    yield Case("deviation", lambda x: (x.std(), x.std(1), *torch.std_mean(x, -1, correction=0), x.std(0, keepdim=True)), [M])
    yield Case("extremes", lambda x: (x.amax(1), x.amax(), x.amin((0, 1)), x.max(), x.min(), *torch.aminmax(x, dim=1)), [M])
    yield Case("extremes along", lambda x: (x.max(1).values, x.min(1, keepdim=True).values, x.cummax(1).values, x.cummin(1).values), [M], gradients=False)
    yield Case("norms", lambda x: (torch.linalg.vector_norm(x), torch.linalg.vector_norm(x, 2, dim=1), torch.linalg.vector_norm(x, 1), torch.linalg.vector_norm(x, math.inf, dim=0), x.norm(), x.norm(3, 1), torch.linalg.vector_norm(x, -math.inf, dim=0)), [M])
    yield Case("norms of other orders", lambda x, y: (x.norm(2.5), torch.linalg.vector_norm(x, 0), F.pairwise_distance(x, y), torch.dist(x, y), torch.dist(x, y, 1), x.norm(4, 1, keepdim=True), F.pairwise_distance(x, y, 1)), [(2, 3), (2, 3)])
    yield Case("renorm", lambda x: torch.renorm(x, 2, 0, 1.0), [(3, 4)])
    yield Case("normalize, cosine", lambda x, y: (F.normalize(x), F.cosine_similarity(x, y)), [(2, 3), (2, 3)])
    yield Case("prod", lambda x: (x.prod(), x.prod(1)), [M], gradients=False)
    yield Case("cumulated", lambda x: (x.cumsum(1), x.cumsum(-1)), [M])
    yield Case("cumulated without gradients", lambda x: (x.cumprod(1), x.cumprod(0), x.logcumsumexp(1)), [M], gradients=False)
    yield Case("any, all of tokens", lambda x, i: ((i > 2).any(1, keepdim=True) * x, (i > 1).all(1, keepdim=True) * x, torch.all(i > 0, 1).to(torch.float64) * x[:, 0]), [(4, 1)], [(4, 1)], gradients=False)
    yield Case("distances", lambda x, y: (torch.cdist(x, y), torch.cdist(x, y, p=1.0)), [(3, 2), (4, 2)])


def _ordering():
    known = torch.tensor([0.1, -0.4, 0.3], dtype=torch.float64)

    def shifted(i):  # three values that depend on one token, no two equal
        return torch.stack([i.double(), 2.25 - i.double(), i.double() * 0.5 - 1.3], -1)

    yield Case("orders by a token", lambda x, i: (shifted(i).sort(-1, descending=True).values * x, shifted(i).argsort(-1) * x, shifted(i).topk(2).values * x[:, :2], shifted(i).argmax(-1) * x[:, 0], shifted(i).argmin(-1, keepdim=True) * x[:, :1], shifted(i).sort(dim=-1, stable=True).indices * x), [(2, 3)], [(2,)], gradients=False)
    yield Case("extremes by a token", lambda x, i: (shifted(i).max(-1).indices * x[:, 0], shifted(i).min(-1).indices * x[:, 0], shifted(i).max(-1).values * x[:, 0], x.gather(1, shifted(i).argmax(-1, keepdim=True))), [(2, 3)], [(2,)], gradients=False)
    yield Case("equal tokens, stable", lambda x, i: (torch.stack([i % 2, i // 3, 1 - i % 2], -1).sort(dim=-1, stable=True).indices * x), [(2, 3)], [(2,)], gradients=False)
    yield Case("buckets", lambda x, i: (torch.bucketize(x, torch.tensor([-0.5, 0.2, 1.0], dtype=torch.float64)), torch.bucketize(i, torch.tensor([1, 3]), right=True), torch.searchsorted(torch.tensor([-0.5, 0.2, 1.0], dtype=torch.float64), x), torch.searchsorted(torch.tensor([[0, 2], [1, 3]]), i, right=True), torch.searchsorted(torch.tensor([[0, 2], [1, 3]]), i, side="left")), [(2, 3)], [(2, 4)], gradients=False)
    yield Case("isin", lambda x, i: (torch.isin(i, torch.tensor([1, 4])) * x, torch.isin(i, torch.tensor([1, 4]), invert=True) * x), [(4,)], [(4,)], gradients=False)
    yield Case("known order", lambda x: (x[known.argsort()], x * known.topk(2).values[0], x[known.argmax()]), [(3,)])


def _products():
    yield Case("products", lambda x, y, z: (x @ y, torch.addmm(z, x, y, beta=0.5, alpha=2), torch.mv(x, y[:, 0]), torch.dot(x[0], y[:, 0]), torch.vdot(x[0], y[:, 0])), [(2, 3), (3, 4), (4,)])
    yield Case("batched products", lambda x, y, z: (x @ y, torch.bmm(x, y), torch.baddbmm(z, x, y, beta=2), torch.addbmm(z[0], x, y, alpha=0.5)), [(2, 2, 3), (2, 3, 2), (2, 2, 2)])
    yield Case("vectors", lambda x, y, z: (torch.outer(x, y), torch.addr(z, x, y, beta=2), torch.addmv(x, z, y, alpha=3), torch.kron(x, y), torch.inner(x, x), torch.tensordot(z, y, 1)), [(2,), (3,), (2, 3)])
    yield Case("cross", lambda x, y: (torch.cross(x, y, dim=1), torch.linalg.cross(x, y)), [(2, 3), (2, 3)])
    yield Case("einsum, bilinear", lambda x, y, z: (torch.einsum("bi,bj->ij", x, y), F.bilinear(x, y, z)), [(2, 3), (2, 4), (2, 3, 4)])
    yield Case("trace, block_diag", lambda x, y: (torch.trace(x), torch.block_diag(x, y), torch.linalg.matrix_norm(x), torch.linalg.matrix_power(x, 3)), [(3, 3), (2, 1)])
    yield Case("linear", lambda x, y, z: F.linear(x, y, z), [(2, 3, 4), (5, 4), (5,)])
    yield Case("trilinear", lambda x, y, z: (A._trilinear(x, y, z, [1, 3], [0], [1, 2], [2, 3]), A._trilinear(x, y, z, [1, 3], [0], [1, 2], [])), [(2, 3), (4, 3, 5), (2, 5)], gradients=False)


def cases():
    for family in (_reducing, _ordering, _products):
        yield from family()
