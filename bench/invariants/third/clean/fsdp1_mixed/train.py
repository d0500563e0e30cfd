"""FullyShardedDataParallel (the wrapper class) on two CPU ranks, bf16 parameters in compute, full state at the end."""
import functools
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, MixedPrecision, ShardingStrategy
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD, VOCAB, LENGTH = 2, 20, 16


class Block(nn.Module):
    def __init__(self, d, heads=4):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class Lm(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, d), nn.Embedding(LENGTH, d)
        self.blocks = nn.Sequential(Block(d), Block(d))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, VOCAB)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def fibonacci_batch(n, gen):
    """Fibonacci-like sequences modulo the vocabulary from random first pairs."""
    seq = [torch.randint(0, VOCAB, (n,), generator=gen), torch.randint(0, VOCAB, (n,), generator=gen)]
    for _ in range(LENGTH - 1):
        seq.append((seq[-1] + seq[-2]) % VOCAB)
    ids = torch.stack(seq, 1)
    return ids[:, :LENGTH], ids[:, 1:LENGTH + 1]


def worker(rank, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD)
    torch.set_num_threads(1)
    torch.manual_seed(SEED)  # every rank builds the same full model before it is sharded
    model = FSDP(
        Lm(),
        auto_wrap_policy=functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block}),
        sharding_strategy=ShardingStrategy.FULL_SHARD,
        mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32,
                                       buffer_dtype=torch.bfloat16),
        device_id=torch.device("cpu"),
        use_orig_params=True,
    )
    # the optimizer is built after sharding, so its state is sharded as well
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=max(1, STEPS // 3), T_mult=2, eta_min=1e-3)
    gen = torch.Generator().manual_seed(100 * SEED + rank)  # own data on every rank
    model.train()
    for step in range(STEPS):
        ids, labels = fibonacci_batch(16, gen)
        loss = F.cross_entropy(model(ids).float().flatten(0, 1), labels.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        norm = model.clip_grad_norm_(1.0)  # the norm over all shards
        opt.step()
        sched.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"{step} loss {mean.item() / WORLD:.4f} norm {norm.item():.3f} lr {sched.get_last_lr()[0]:.5f}", flush=True)

    with FSDP.summon_full_params(model, writeback=False):
        # clones: the gathered parameters are freed when the context ends
        state = {name: p.detach().clone() for name, p in model.named_parameters()}  # FSDP cleans the names
    if rank == 0:
        plain = Lm()
        plain.load_state_dict(state)
        plain.eval()
        with torch.no_grad():
            ids, labels = fibonacci_batch(64, torch.Generator().manual_seed(9_000 + SEED))
            loss = F.cross_entropy(plain(ids).flatten(0, 1), labels.flatten())
        print(f"unsharded float32 model, held out {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(port,), nprocs=WORLD)


if __name__ == "__main__":
    main()
