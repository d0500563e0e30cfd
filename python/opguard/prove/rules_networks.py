"""Cases of rules.py: soft maxima, losses, normalisation, attention, embeddings in bags.

    Case("nll_loss", ..., [(3, SIZE)], [(3,)])      x: rows of SIZE numbers; i: a token a row, the row's target

A target is a token: what the loss is of each value is compared at the one that was drawn. Attention runs as its kernel
and, by sdpa_kernel(MATH), as the operators that it is made of: two meanings, one result."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from .rules_case import SIZE, Case

A = torch.ops.aten
M = (3, 4)


def _soft():
    yield Case("soft maxima", lambda x: (x.softmax(-1), x.softmax(0), x.log_softmax(-1), torch.logsumexp(x, 1), F.softmin(x, 1)), [M])
    yield Case("safe soft maximum", lambda x: A._safe_softmax(x.masked_fill(torch.tensor([[True], [False], [False]]), float("-inf")), -1), [M], gradients=False)


def _losses():
    weights = torch.tensor([0.5, 1.0, 2.0, 0.25, 1.5], dtype=torch.float64)
    yield Case("nll_loss", lambda x, i: (F.nll_loss(x, i), F.nll_loss(x, i, reduction="sum"), F.nll_loss(x, i, reduction="none"), F.nll_loss(x, i, ignore_index=2), F.nll_loss(x[0], i[0])), [(3, SIZE)], [(3,)])
    yield Case("nll_loss with weights", lambda x, i: (F.nll_loss(x, i, weights, reduction="sum"), F.nll_loss(x, i, weights, reduction="none"), F.nll_loss(x[:1], i[:1], weights, reduction="sum", ignore_index=1)), [(3, SIZE)], [(3,)])
    yield Case("nll_loss of images", lambda x, i: (F.nll_loss(x, i), F.nll_loss(x, i, reduction="sum", ignore_index=3), F.nll_loss(x, i, reduction="none"), F.cross_entropy(x, i, weights, reduction="sum")), [(2, SIZE, 1, 2)], [(2, 1, 2)])
    yield Case("cross_entropy", lambda x, i: (F.cross_entropy(x, i), F.cross_entropy(x, i, reduction="none"), F.cross_entropy(x, i, label_smoothing=0.1)), [(3, SIZE)], [(3,)])
    yield Case("cross_entropy of shares", lambda x, y: F.cross_entropy(x, y.softmax(-1)), [M, M])
    each = ("mean", "sum", "none")
    yield Case("mse_loss, l1_loss", lambda x, y: tuple(loss(x, y, reduction=how) for loss in (F.mse_loss, F.l1_loss) for how in each), [M, M])
    yield Case("smooth_l1, huber", lambda x, y: (*(F.smooth_l1_loss(x, y, reduction=how, beta=0.8) for how in each), *(F.huber_loss(x, y, reduction=how, delta=0.7) for how in each), A.smooth_l1_loss(x, y, 1, 0.0)), [M, M])
    yield Case("kl_div, poisson, soft margin", lambda x, y: (F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"), F.kl_div(x, y, log_target=True), F.poisson_nll_loss(x, y.exp()), F.soft_margin_loss(x, y.detach().sign()), F.soft_margin_loss(x, y.detach().sign(), reduction="none")), [M, M])
    yield Case("binary_cross_entropy", lambda x, y: (F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), F.binary_cross_entropy(x.sigmoid(), y.sigmoid().detach(), weight=y.detach().exp(), reduction="sum"), F.binary_cross_entropy(x.sigmoid(), y.sigmoid().detach(), reduction="none")), [M, M])
    yield Case("binary_cross_entropy_with_logits", lambda x, y: (F.binary_cross_entropy_with_logits(x, y.sigmoid()), F.binary_cross_entropy_with_logits(x, y.sigmoid().detach(), weight=y.detach().exp(), pos_weight=torch.tensor([0.5, 1.0, 2.0, 3.0], dtype=torch.float64), reduction="sum")), [M, M])
    yield Case("margins", lambda x, y: (F.hinge_embedding_loss(x, torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64).expand(3, 4)), F.margin_ranking_loss(x, y, torch.ones(3, 4, dtype=torch.float64)), F.triplet_margin_loss(x, y, x + y), F.cosine_embedding_loss(x, y, torch.tensor([1, -1, 1])), F.multilabel_soft_margin_loss(x, (y > 0).double())), [M, M])


def _norms():
    yield Case("layer_norm", lambda x, y, z: (F.layer_norm(x, (4,), y, z), F.layer_norm(x, (4,)), F.layer_norm(x, (3, 4))), [M, (4,), (4,)])
    yield Case("rms_norm", lambda x, y: (F.rms_norm(x, (4,), y, 1e-5), F.rms_norm(x, (3, 4))), [M, (4,)])
    yield Case("group_norm", lambda x, y, z: (F.group_norm(x, 2, y, z), F.group_norm(x, 4), F.instance_norm(x, weight=y, bias=z)), [(2, 4, 3), (4,), (4,)])
    yield Case("batch_norm", lambda x, y, z: (F.batch_norm(x, None, None, y, z, True), F.batch_norm(x, torch.ones(4, dtype=x.dtype), 2 * torch.ones(4, dtype=x.dtype), y, z, False), F.batch_norm(x, None, None, None, None, True)), [(2, 4, 3), (4,), (4,)])
    yield Case("running statistics", _running, [(3, 4), (4,), (4,)], gradients=False)
    yield Case("weight_norm", lambda x, y: (torch._weight_norm(x, y, 0), torch._weight_norm(x, y.reshape(1, 3)[:, :1].expand(1, 4) * 1, 1)), [(3, 4), (3, 1)])


def _running(x, mean, spread):
    """Batch norm's running statistics, which are written in place by several operators of ATen."""
    spread = spread.square() + 0.5
    found, kept = [], []
    for norm in (lambda m, v: F.batch_norm(x, m, v, None, None, True, 0.3), lambda m, v: A._native_batch_norm_legit(x, None, None, m, v, True, 0.3, 1e-5)[0], lambda m, v: A._batch_norm_with_update(x, None, None, m, v, 0.3, 1e-5)[0]):
        kept += [mean.clone(), spread.clone()]
        found.append(norm(*kept[-2:]))
    found += [A._native_batch_norm_legit.no_stats(x, None, None, True, 0.3, 1e-5)[0], A._native_batch_norm_legit_no_training(x, None, None, mean, spread, 0.3, 1e-5)[0], A._batch_norm_no_update(x, None, None, mean, spread, 0.3, 1e-5)[0]]
    return found + kept + [kept[0] * 2]


def _heads(q, k, v, **how):
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, k, v, **how)


def _attention():
    shape, fewer = (1, 2, 3, 4), (1, 1, 3, 4)
    causal = torch.ones(3, 3, dtype=torch.bool).tril()
    bias = torch.linspace(-1, 1, 9, dtype=torch.float64).reshape(3, 3)
    yield Case("attention", lambda x, y, z: (F.scaled_dot_product_attention(x, y, z), F.scaled_dot_product_attention(x, y, z, is_causal=True)), [shape] * 3)
    yield Case("attention, masked", lambda x, y, z: (F.scaled_dot_product_attention(x, y, z, attn_mask=causal), F.scaled_dot_product_attention(x, y, z, attn_mask=bias, scale=0.25)), [shape] * 3)
    yield Case("attention, shared heads", lambda x, y, z: F.scaled_dot_product_attention(x, y, z, enable_gqa=True), [shape, fewer, fewer])
    yield Case("attention by composition", lambda x, y, z: (_heads(x, y, z), _heads(x, y, z, is_causal=True), _heads(x, y, z, attn_mask=causal)), [shape] * 3)
    yield Case("multi-head attention", _multi_head, [(3, 2, 4)])
    yield Case("recurrent", _recurrent, [(2, 3, 4)])


def _multi_head(x):
    """The layer's own weights are constants of the case: the seed makes them the same when its step is recorded."""
    torch.manual_seed(1)
    return nn.MultiheadAttention(4, 2, dtype=x.dtype)(x, x, x)


def _recurrent(x):
    torch.manual_seed(1)
    return nn.GRU(4, 3, dtype=x.dtype)(x)[0], nn.RNN(4, 3, dtype=x.dtype)(x)[0], nn.LSTMCell(4, 3, dtype=x.dtype)(x[0])[0]


def _bags():
    starts = torch.tensor([0, 2])
    yield Case("embedding_bag", lambda x, i: (F.embedding_bag(i, x, starts, mode="sum"), F.embedding_bag(i, x, starts, mode="mean"), F.embedding_bag(i, x, torch.tensor([0, 3, 4]), mode="sum", include_last_offset=True)), [(SIZE, 2)], [(4,)])
    yield Case("embedding_bag, padded", lambda x, i: F.embedding_bag(i, x, starts, mode="sum", padding_idx=1), [(SIZE, 2)], [(4,)])
    yield Case("embedding_bag, weighted", lambda x, y, i: F.embedding_bag(i, x, starts, mode="sum", per_sample_weights=y.detach()), [(SIZE, 2), (4,)], [(4,)])


def cases():
    for family in (_soft, _losses, _norms, _attention, _bags):
        yield from family()
