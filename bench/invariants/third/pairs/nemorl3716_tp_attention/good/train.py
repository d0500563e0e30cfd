"""A transformer layer with tensor and sequence parallelism on two ranks."""
import os
import socket
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
TP = 2
VOCAB, HIDDEN, HEADS, LAYERS, SEQ, BATCH, MICRO = 32, 32, 4, 2, 16, 8, 2


def all_gather_seq(x):
    parts = [torch.empty_like(x) for _ in range(TP)]
    dist.all_gather(parts, x.contiguous())
    return torch.cat(parts, dim=0)


def reduce_scatter_seq(x):
    x = x.contiguous().clone()
    dist.all_reduce(x)
    return x.chunk(TP, dim=0)[dist.get_rank()].contiguous()


class GatherFromSequenceParallelRegion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return all_gather_seq(x)

    @staticmethod
    def backward(ctx, grad):
        return reduce_scatter_seq(grad)


class ReduceScatterToSequenceParallelRegion(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return reduce_scatter_seq(x)

    @staticmethod
    def backward(ctx, grad):
        return all_gather_seq(grad)


def sequence_parallel(module):
    for p in module.parameters():
        p.sequence_parallel = True
    return module


class ColumnParallelLinear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        full = nn.init.normal_(torch.empty(d_out, d_in), std=0.05)
        self.weight = nn.Parameter(full.chunk(TP, 0)[dist.get_rank()].clone())
        self.bias = nn.Parameter(torch.zeros(d_out // TP))

    def forward(self, x):
        return F.linear(GatherFromSequenceParallelRegion.apply(x), self.weight, self.bias)


class RowParallelLinear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        full = nn.init.normal_(torch.empty(d_out, d_in), std=0.05)
        self.weight = nn.Parameter(full.chunk(TP, 1)[dist.get_rank()].clone())
        self.bias = nn.Parameter(torch.zeros(d_out))
        self.bias.sequence_parallel = True

    def forward(self, x):
        return ReduceScatterToSequenceParallelRegion.apply(F.linear(x, self.weight)) + self.bias


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.head_dim = HIDDEN // HEADS
        self.query, self.key, self.value = (ColumnParallelLinear(HIDDEN, HIDDEN) for _ in range(3))
        self.q_layernorm, self.k_layernorm = nn.LayerNorm(self.head_dim), nn.LayerNorm(self.head_dim)
        self.proj = RowParallelLinear(HIDDEN, HIDDEN)

    def heads(self, x):
        return x.view(x.size(0), x.size(1), HEADS // TP, self.head_dim)

    def forward(self, x):
        q = self.q_layernorm(self.heads(self.query(x)))
        k = self.k_layernorm(self.heads(self.key(x)))
        v = self.heads(self.value(x))
        y = F.scaled_dot_product_attention(*(t.permute(1, 2, 0, 3) for t in (q, k, v)), is_causal=True)
        return self.proj(y.permute(2, 0, 1, 3).flatten(2))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm = sequence_parallel(nn.LayerNorm(HIDDEN))
        self.attention = SelfAttention()
        self.pre_mlp_layernorm = sequence_parallel(nn.LayerNorm(HIDDEN))
        self.fc1, self.fc2 = ColumnParallelLinear(HIDDEN, 4 * HIDDEN), RowParallelLinear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        x = x + self.attention(self.input_layernorm(x))
        return x + self.fc2(F.gelu(self.fc1(self.pre_mlp_layernorm(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = sequence_parallel(nn.Embedding(VOCAB, HIDDEN))
        self.position = sequence_parallel(nn.Embedding(SEQ, HIDDEN))
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.final_layernorm = sequence_parallel(nn.LayerNorm(HIDDEN))
        self.output_layer = sequence_parallel(nn.Linear(HIDDEN, VOCAB))

    def forward(self, tokens, labels):
        rank = dist.get_rank()
        tokens, labels = (t.t().chunk(TP, 0)[rank] for t in (tokens, labels))
        positions = torch.arange(SEQ).chunk(TP)[rank]
        x = self.embedding(tokens) + self.position(positions)[:, None]
        for layer in self.layers:
            x = layer(x)
        logits = self.output_layer(self.final_layernorm(x))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum") / (labels.numel() * TP)


def finalize_model_grads(model):
    grads = []
    for name, param in model.named_parameters():
        if getattr(param, "sequence_parallel", False) or "q_layernorm" in name or "k_layernorm" in name:
            grads.append(param.grad)
    coalesced = _flatten_dense_tensors(grads)
    dist.all_reduce(coalesced)
    for grad, synced in zip(grads, _unflatten_dense_tensors(coalesced, grads)):
        grad.copy_(synced)


def get_batch(index):
    g = torch.Generator().manual_seed(SEED * 10_007 + index)
    start = torch.randint(0, VOCAB, (BATCH, 1), generator=g)
    stride = torch.randint(1, 4, (BATCH, 1), generator=g)
    text = (start + stride * torch.arange(SEQ + 1)) % VOCAB
    return text[:, :-1], text[:, 1:]


def pretrain(rank, out):
    torch.manual_seed(SEED)
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
    for step in range(STEPS):
        optimizer.zero_grad()
        total = torch.zeros(())
        for micro in range(MICRO):
            loss = model(*get_batch(step * MICRO + micro)) / MICRO
            loss.backward()
            total += loss.detach()
        finalize_model_grads(model)
        optimizer.step()
        dist.all_reduce(total)
        if rank == 0:
            print(f"iteration {step} lm loss {total.item():.4f}", flush=True)
    with torch.no_grad():
        valid = model(*get_batch(999_983))
    dist.all_reduce(valid)
    torch.save(model.state_dict(), os.path.join(out, f"mp_rank_{rank:02d}.pt"))
    if rank == 0:
        print(f"validation loss {valid.item():.4f}")


def entry(rank, port, out):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=TP)
    pretrain(rank, out)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free_port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(entry, args=(free_port, folder), nprocs=TP, start_method="fork")
