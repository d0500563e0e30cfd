"""Tensor and sequence parallel transformer on a DeviceMesh, vocabulary-sharded logits under loss_parallel."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel,
                                               loss_parallel, parallelize_module)

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD, VOCAB, DIM, HEADS, LENGTH = 2, 32, 32, 4, 16


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.wq, self.wk, self.wv = (nn.Linear(DIM, DIM, bias=False) for _ in range(3))
        self.wo = nn.Linear(DIM, DIM, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (w(x).view(b, t, -1, DIM // HEADS).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # the local heads
        return self.wo(y.transpose(1, 2).reshape(b, t, -1))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(DIM, 64, bias=False), nn.Linear(64, DIM, bias=False), nn.Linear(DIM, 64, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn_norm, self.ffn_norm = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attn, self.ffn = Attention(), FeedForward()

    def forward(self, x):
        x = x + self.attn(self.attn_norm(x))
        return x + self.ffn(self.ffn_norm(x))


class Lm(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm = nn.LayerNorm(DIM)
        self.out = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, ids):
        x = self.tok(ids)
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x))


def shard(model, mesh):
    parallelize_module(model, mesh, {
        "tok": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "out": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False),
    })
    for block in model.blocks:
        parallelize_module(block, mesh, {
            "attn_norm": SequenceParallel(),
            "attn": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
            "attn.wq": ColwiseParallel(), "attn.wk": ColwiseParallel(), "attn.wv": ColwiseParallel(),
            "attn.wo": RowwiseParallel(output_layouts=Shard(1)),
            "ffn_norm": SequenceParallel(),
            "ffn": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
            "ffn.w1": ColwiseParallel(), "ffn.w3": ColwiseParallel(),
            "ffn.w2": RowwiseParallel(output_layouts=Shard(1)),
        })
    return model


def batch(n, gen):
    """Two interleaved counters with their own strides."""
    start = torch.randint(0, VOCAB, (n, 2), generator=gen)
    stride = torch.randint(1, 4, (n, 2), generator=gen)
    t = torch.arange(LENGTH + 2) // 2
    which = torch.arange(LENGTH + 2) % 2
    ids = (start[:, which] + stride[:, which] * t) % VOCAB
    return ids[:, :LENGTH], ids[:, 1:LENGTH + 1]


def worker(rank, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD)
    torch.set_num_threads(1)
    mesh = init_device_mesh("cpu", (WORLD,), mesh_dim_names=("tp",))
    torch.manual_seed(SEED)  # the same full model everywhere before it is cut
    model = shard(Lm(), mesh)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.0, foreach=True)
    gen = torch.Generator().manual_seed(SEED)  # tensor parallel ranks must see the same batch
    for step in range(STEPS):
        ids, labels = batch(16, gen)
        opt.zero_grad()
        with loss_parallel():
            loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
            loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        value, total = loss.full_tensor().item(), norm.full_tensor().item()  # collectives: on every rank
        if rank == 0:
            print(f"{step} loss {value:.4f} norm {total:.3f}", flush=True)

    model.eval()
    ids, labels = batch(32, torch.Generator().manual_seed(SEED + 99))
    with torch.no_grad():
        logits = model(ids).full_tensor()
    if rank == 0:
        print(f"held out {F.cross_entropy(logits.flatten(0, 1), labels.flatten()).item():.4f}", flush=True)
    dist.destroy_process_group()


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(port,), nprocs=WORLD)


if __name__ == "__main__":
    main()
