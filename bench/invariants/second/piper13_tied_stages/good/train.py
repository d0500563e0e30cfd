"""A causal language model in two pipeline stages, micro-batches by hand. The head has the weights of the embedding."""

import math
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
VOCAB, WIDTH, LENGTH, MICRO, MICRO_BATCHES = 23, 16, 8, 4, 3
FIRST, LAST = 0, 1


class Attention(nn.Module):
    def __init__(self, heads=2):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.proj(y.transpose(1, 2).reshape(b, t, WIDTH))


class Stage(nn.Module):
    """Both stages have word_embeddings: one to look up, the other to score."""

    def __init__(self, index):
        super().__init__()
        self.index = index
        self.word_embeddings = nn.Embedding(VOCAB, WIDTH)
        nn.init.normal_(self.word_embeddings.weight, std=1 / math.sqrt(WIDTH))
        if index == FIRST:
            self.positions = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.attention = Attention()
        if index == LAST:
            self.final_norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        if self.index == FIRST:
            return self.attention(self.word_embeddings(x) + self.positions)
        return self.final_norm(self.attention(x)) @ self.word_embeddings.weight.T


def reduce_shared_embedding(stage):
    dist.all_reduce(stage.word_embeddings.weight.grad)


def first_stage(stage, tokens):
    sent = []
    for micro in tokens.split(MICRO):
        hidden = stage(micro[:, :-1])
        dist.send(hidden.detach(), dst=LAST)
        sent.append(hidden)
    for hidden in sent:
        grad = torch.empty_like(hidden)
        dist.recv(grad, src=LAST)
        hidden.backward(grad)


def last_stage(stage, tokens):
    received, losses = [], []
    for micro in tokens.split(MICRO):
        hidden = torch.empty(MICRO, LENGTH, WIDTH)
        dist.recv(hidden, src=FIRST)
        hidden.requires_grad_()
        logits = stage(hidden)
        losses.append(F.cross_entropy(logits.flatten(0, 1), micro[:, 1:].flatten()) / MICRO_BATCHES)
        received.append(hidden)
    for hidden, loss in zip(received, losses):
        loss.backward()
        dist.send(hidden.grad, dst=FIRST)
    return sum(loss.item() for loss in losses)


def worker(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(SEED)
    stage = Stage(rank)
    dist.broadcast(stage.word_embeddings.weight.data, src=FIRST)
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.2, momentum=0.9)
    text = torch.Generator().manual_seed(SEED + 100)
    for step in range(STEPS):
        start = torch.randint(0, VOCAB, (MICRO * MICRO_BATCHES, 1), generator=text)
        tokens = (start + 3 * torch.arange(LENGTH + 1)) % VOCAB
        optimizer.zero_grad()
        if rank == FIRST:
            first_stage(stage, tokens)
        else:
            loss = last_stage(stage, tokens)
        reduce_shared_embedding(stage)
        optimizer.step()
        if rank == LAST:
            print(f"step {step}: loss {loss:.5f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(worker, args=(os.path.join(folder, "store"),), nprocs=2, start_method="fork")
