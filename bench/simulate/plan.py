"""A small language model by DTensor plans: tensor, sequence and context parallel, fully_shard, DDP.

python train.py
torchrun --standalone --nproc-per-node 2 train.py --tp 2
torchrun --standalone --nproc-per-node 4 train.py --tp 2 --data 2 --fsdp
"""

import argparse
import math
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

TOKENS, DIM, HEADS, LENGTH, BATCH = 100, 32, 4, 16, 2


class Block(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(DIM), nn.RMSNorm(DIM)
        self.query, self.key, self.value, self.out = (nn.Linear(DIM, DIM, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(DIM, 4 * DIM, bias=False), nn.Linear(4 * DIM, DIM, bias=False)
        self.dropout = nn.Dropout(dropout)

    def heads(self, x):
        return x.view(x.shape[0], x.shape[1], -1, DIM // HEADS).transpose(1, 2)

    def attend(self, x):
        q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.dropout(self.attend(self.norm1(x)))
        return x + self.dropout(self.down(F.gelu(self.up(self.norm2(x)))))


class Model(nn.Module):
    def __init__(self, tokens, dropout):
        super().__init__()
        self.embedding = nn.Embedding(tokens, DIM)
        self.blocks = nn.ModuleList(Block(dropout) for _ in range(2))
        self.norm = nn.RMSNorm(DIM)
        self.head = nn.Linear(DIM, tokens, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def arguments():
    parser = argparse.ArgumentParser()
    for name in ("tp", "cp", "data"):
        parser.add_argument("--" + name, type=int, default=1)
    parser.add_argument("--fsdp", action="store_true")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=2)
    return parser.parse_args()


def padded(tokens, multiple):
    return math.ceil(tokens / multiple) * multiple


def tensor_parallel(model, mesh):
    parallelize_module(
        model,
        mesh,
        {
            "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "norm": SequenceParallel(),
            "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
        },
    )
    for block in model.blocks:
        parallelize_module(
            block,
            mesh,
            {
                "norm1": SequenceParallel(),
                "norm2": SequenceParallel(),
                "query": ColwiseParallel(input_layouts=Shard(1)),
                "key": ColwiseParallel(input_layouts=Shard(1)),
                "value": ColwiseParallel(input_layouts=Shard(1)),
                "out": RowwiseParallel(output_layouts=Shard(1)),
                "up": ColwiseParallel(input_layouts=Shard(1)),
                "down": RowwiseParallel(output_layouts=Shard(1)),
            },
        )


def batch(step, number):
    generator = torch.Generator().manual_seed(1000 + 100 * step + number)
    tokens = torch.randint(0, TOKENS, (BATCH, LENGTH + 1), generator=generator)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def main():
    o = arguments()
    torch.set_num_threads(1)
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    data_rank = tp_rank = 0
    cp = data = None
    if world > 1:
        dist.init_process_group("gloo")
        mesh = init_device_mesh("cpu", (o.data, o.cp, o.tp), mesh_dim_names=("data", "cp", "tp"))
        data_rank, tp_rank = mesh.get_local_rank("data"), mesh.get_local_rank("tp")
        cp = mesh["cp"] if o.cp > 1 else None
        data = mesh["data"] if o.data > 1 else None
    torch.manual_seed(o.seed)
    model = Model(padded(TOKENS, 8), o.dropout)
    if o.tp > 1:
        tensor_parallel(model, mesh["tp"])
    if o.fsdp:
        for block in model.blocks:
            fully_shard(block, mesh=data)
        fully_shard(model, mesh=data)
    elif data is not None:
        model = nn.parallel.DistributedDataParallel(model, process_group=data.get_group())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
    torch.manual_seed(o.seed + 1000 + data_rank)
    for step in range(o.steps):
        tokens, labels = batch(step, data_rank)
        if cp is None:
            logits = model(tokens)
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
            loss.backward()
        else:
            with context_parallel(cp, buffers=[tokens, labels], buffer_seq_dims=[1, 1]):
                logits = model(tokens)
                loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
                loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        norm = norm.full_tensor() if isinstance(norm, DTensor) else norm
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"step {step} loss {loss.item():.9f} norm {norm.item():.9f}", flush=True)
    if world > 1:
        dist.destroy_process_group()


main()
