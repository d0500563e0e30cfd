"""Causal attention by blocks, as flash kernels have it: no matrix of all scores is kept.

Of 300 tokens in blocks of 64, the last 44 queries meet five blocks of keys, one after the other. Blocks behind a query's own are never read.
Forward keeps one number for each query: the logarithm of the sum of its exponentials. Backward makes each block's weights again from it.
"""
import torch

BLOCK = 64


def blocks(length):
    """(first query, first key) of each pair of blocks in which a query sees a key."""
    return [(i, j) for i in range(0, length, BLOCK) for j in range(0, i + 1, BLOCK)]


def block_scores(q, k, i, j):
    """Scores of the block of queries from i on with the block of keys from j on."""
    scores = q[..., i : i + BLOCK, :] @ k[..., j : j + BLOCK, :].transpose(-2, -1) / q.shape[-1] ** 0.5
    later = torch.arange(j, j + scores.shape[-1]) > torch.arange(i, i + scores.shape[-2])[:, None]
    return scores.masked_fill(later, float("-inf"))


class Blocked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        top = q.new_full((*q.shape[:-1], 1), float("-inf"))
        total, mixed = torch.zeros_like(top), torch.zeros_like(q)
        for i, j in blocks(q.shape[-2]):
            rows = slice(i, i + BLOCK)
            scores = block_scores(q, k, i, j)
            largest = torch.maximum(top[..., rows, :], scores.amax(-1, keepdim=True))
            weights, before = (scores - largest).exp(), (top[..., rows, :] - largest).exp()
            total[..., rows, :] = total[..., rows, :] * before + weights.sum(-1, keepdim=True)
            mixed[..., rows, :] = mixed[..., rows, :] * before + weights @ v[..., j : j + BLOCK, :]
            top[..., rows, :] = largest
        out, logsum = mixed / total, top + total.log()
        ctx.save_for_backward(q, k, v, out, logsum)
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v, out, logsum = ctx.saved_tensors
        of_q, of_k, of_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        # A row's weights sum to 1, so this much of its gradient is lost in the softmax.
        shared = (grad * out).sum(-1, keepdim=True)
        for i, j in blocks(q.shape[-2]):
            rows, keys = slice(i, i + BLOCK), slice(j, j + BLOCK)
            weights = (block_scores(q, k, i, j) - logsum[..., rows, :]).exp()
            of_v[..., keys, :] += weights.transpose(-2, -1) @ grad[..., rows, :]
            of_weights = grad[..., rows, :] @ v[..., keys, :].transpose(-2, -1)
            of_scores = weights * (of_weights - shared[..., rows, :]) / q.shape[-1] ** 0.5
            of_q[..., rows, :] += of_scores @ k[..., keys, :]
            of_k[..., keys, :] += of_scores.transpose(-2, -1) @ q[..., rows, :]
        return of_q, of_k, of_v


def blocked(q, k, v):
    return Blocked.apply(q, k, v)
