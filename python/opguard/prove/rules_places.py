"""Cases of rules.py: what moves, copies of views, look-ups and what is put at places.

    Case("indices by tokens", lambda x, i: (x[i], ...), [W], [(3,)])      a place that is known for each value of i
    Case("known indices", lambda x: (x[OTHERS], ...), [W])                a place that is a constant of the step

Views are mostly doubled, so that an operator reads them."""

import torch
import torch.nn.functional as F

from .rules_case import SIZE, Case

A = torch.ops.aten
M = (2, 3, 4)  # three sizes, so that no two dimensions can be mistaken for one another
W = (SIZE, 3)  # rows that a token can name
PLACES, OTHERS = torch.tensor([1, 3]), torch.tensor([2, 0, 2])


def _moving():
    yield Case("cat, stack", lambda x, y: (torch.cat([x, y], 1), torch.cat([x, y], -1), torch.stack([x, y]), torch.stack([x, y], -1)), [M, M])
    yield Case("parts", lambda x: (x[:, 1:], x[:, ::2], x[0], x.select(2, 1), x.narrow(1, 1, 2), *x.chunk(2, -1), *x.split([1, 3], 2), x[:, -10:], x[:, :-1], *x.unbind(1)), [M])
    yield Case("shapes", lambda x: (x.reshape(6, 4) * 2, x.transpose(0, 2).reshape(-1) * 2, x.permute(2, 0, 1) * 2, x.unsqueeze(1).expand(2, 2, 3, 4) * 2, x.flatten() * 2, x.mT * 2), [M])
    yield Case("pad, roll, flip, repeat", lambda x: (F.pad(x, (1, 2)), F.pad(x, (0, 1, 2, 0), value=0.5), F.pad(x, (-1, 1)), x.roll(1, 1), x.roll((1, 2), (0, 2)), x.roll(2), x.flip(1), x.flip((0, 2)), x.repeat(2, 1, 1), x.repeat(2, 1, 2, 1), x.rot90(1, (1, 2))), [M])
    yield Case("triangles", lambda x: (x.tril(), x.triu(1), x.tril(-1), x.triu(-1)), [M])
    yield Case("repeat_interleave", lambda x: (x.repeat_interleave(2, 1), x.repeat_interleave(2, 0), x.repeat_interleave(torch.tensor([1, 0, 2]), 1)), [M])
    yield Case("repeat_interleave by what is not unknown", lambda x: A.repeat_interleave.Tensor(torch.zeros_like(x, dtype=torch.int64) + 2) * x[0], [(3,)], gradients=False)
    yield Case("diagonals", lambda x: (x.diagonal(1, 1, 2) * 2, torch.diag_embed(x), torch.diag_embed(x, 1, 0, 2), x[0].diag() * 2, torch.diagonal_scatter(x, x[:, :, 0], 0, 1, 2)), [M])
    yield Case("windows", lambda x: (x.unfold(2, 2, 1) * 2, x.unfold(1, 2, 1).sum(-1)), [M])
    yield Case("written views", lambda x, y: (x.select_scatter(y[0], 0, 1), x.slice_scatter(y[:, 1:], 1, 0, 2), x.slice_scatter(y[:, :, ::2], 2, 0, 4, 2)), [M, M])
    yield Case("shuffled", lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), F.channel_shuffle(x, 2)), [(1, 4, 2, 2)])


def _copies():
    yield Case("copies of views", lambda x: (A.select_copy(x, 1, -1), A.slice_copy(x, 2, 1, 4, 2), A.diagonal_copy(x, 0, 1, 2), A.unfold_copy(x, 2, 2, 2), A.narrow_copy(x, 2, 1, 2), A.permute_copy(x, [2, 0, 1]), A.transpose_copy(x, 0, 2), A.t_copy(x[0]), A.expand_copy(x[:, :1], [2, 3, 4]), A.view_copy(x, [6, 4]), A._reshape_copy(x, [4, 6]), A.unsqueeze_copy(x, 1), A.squeeze_copy(x[:1]), A.alias_copy(x), A.detach_copy(x)), [M], gradients=False)
    yield Case("copies in parts", lambda x: (*A.split_copy(x, 2, 2), *A.split_with_sizes_copy(x, [1, 2], 1), *A.unbind_copy(x, 1)), [M], gradients=False)
    yield Case("parts into memory", lambda x: _into(x), [M], gradients=False)


def _into(x):
    out = [torch.empty(2, 1, 4, dtype=torch.float64), torch.empty(2, 2, 4, dtype=torch.float64)]
    A.split_with_sizes_copy.out(x, [1, 2], 1, out=out)
    return out


def _look_ups():
    yield Case("embedding", lambda x, i: (F.embedding(i, x), F.embedding(i, x, padding_idx=1)), [W], [(2, 3)])
    yield Case("known indices", lambda x: (x[OTHERS], x[:, torch.tensor([1, 0])], x[torch.tensor([0, 1]), torch.tensor([2, 2])], x.index_select(1, torch.tensor([2, 2, 0])), x[torch.tensor([-1, 0])], A._unsafe_index(x, [OTHERS])), [W])
    yield Case("known masks", lambda x: (x[torch.tensor([True, False, True, True, False])], x[:, torch.tensor([True, False, True])], x[torch.ones(SIZE, 3, dtype=torch.bool).tril()], x.masked_select(torch.tensor([True, False, True]))), [W])
    yield Case("indices by tokens", lambda x, i: (x[i], x[i, torch.tensor([0, 1, 2])], x[torch.tensor([0, 1, 2]), i % 3], x[i - 2], x.take(i)), [W], [(3,)])
    yield Case("gather", lambda x, i: (x.gather(0, i), x.gather(1, (i % 3))), [W], [(2, 3)])
    yield Case("one_hot", lambda x, i: (F.one_hot(i, SIZE) * x, F.one_hot(i, SIZE + 2).to(x.dtype) @ torch.ones(SIZE + 2, 1, dtype=x.dtype) * x[:, :1]), [(3, SIZE)], [(3,)])


def _put():
    yield Case("scatter", lambda x, y, i: (x.scatter(0, i, y), x.scatter_add(0, i, y), x.scatter(0, i, 2.0), x.scatter(1, i % 3, y)), [W, (2, 3)], [(2, 3)], gradients=False)
    yield Case("scatter in part", lambda x, y: (x.scatter(0, OTHERS[None], y), x.scatter_add(1, torch.tensor([[0, 0], [2, 1]]), y), x.scatter(0, OTHERS[None], y, reduce="add"), x.scatter(0, OTHERS[None], 3.0, reduce="multiply"), x.scatter(0, OTHERS[None], y, reduce="multiply")), [W, (2, 3)], gradients=False)
    same = torch.tensor([[1, 1, 2], [1, 0, 2], [3, 3, 3]])
    yield Case("scatter_reduce", lambda x, y: tuple(x.scatter_reduce(0, same, y, how, include_self=own) for how in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)), [W, (3, 3)], gradients=False)
    yield Case("scatter_reduce, gradients", lambda x, y: (x.scatter_reduce(0, same, y, "sum"), x.scatter_reduce(0, same, y, "mean"), x.scatter_add(0, same, y)), [W, (3, 3)])
    yield Case("index_put", lambda x, y: (x.index_put((PLACES,), y), x.index_put((torch.tensor([1, 1]),), y, accumulate=True), A.index_put(x, [None, torch.tensor([2])], y[:1, :1]), A._unsafe_index_put(x, [PLACES], y), A._index_put_impl_(x.clone(), [PLACES], y, True)), [W, (2, 3)], gradients=False)
    yield Case("index_put, gradients", lambda x, y: (x.index_put((PLACES,), y), x.index_put((PLACES,), y, accumulate=True)), [W, (2, 3)])
    yield Case("index_put by masks", lambda x, y: (x.index_put((torch.tensor([True, False, True, False, False]),), y), x.index_put((x > 0,), torch.tensor(2.0, dtype=x.dtype))), [W, (2, 3)], gradients=False)
    yield Case("index_put by tokens", lambda x, y, i: (x.index_put((i,), y, accumulate=True), x.index_put((i - 2,), y, accumulate=True)), [W, (2, 3)], [(2,)], gradients=False)
    yield Case("rows", lambda x, y: (x.index_add(0, PLACES, y, alpha=2), x.index_copy(0, PLACES, y), x.index_fill(1, torch.tensor([0, 2]), 0.5), x.index_fill(0, PLACES, y[0, 0])), [W, (2, 3)])
    yield Case("rows reduced", lambda x, y: tuple(x.index_reduce(0, torch.tensor([1, 1]), y, how, include_self=own) for how in ("prod", "mean", "amax", "amin") for own in (True, False)), [W, (2, 3)], gradients=False)
    yield Case("put, masked_scatter", lambda x, y: (x.put(torch.tensor([[1, 4], [7, 1]]), y[:, :2], accumulate=True), x.put(PLACES, y[0, :2]), x.masked_scatter(torch.tensor([True, False, True]), torch.cat([y.flatten(), y.flatten()]))), [W, (2, 3)], gradients=False)


def cases():
    for family in (_moving, _copies, _look_ups, _put):
        yield from family()
