"""DDP with gradient accumulation under no_sync, bf16 autocast, clipping, per-step warmup and a DistributedSampler."""
import contextlib
import math
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD, MICRO, ACCUM = 2, 8, 4


class BracketDataset(Dataset):
    """Strings of brackets; the label says whether they are balanced."""

    def __init__(self, n, seed, length=16):
        gen = torch.Generator().manual_seed(seed)
        self.x = torch.empty(n, length, dtype=torch.long)
        for i in range(n):
            s, depth = [], 0
            for t in range(length):
                left = length - t
                up = depth == 0 or (depth < left and torch.rand((), generator=gen).item() < 0.5)
                s.append(0 if up else 1)
                depth += 1 if up else -1
            if torch.rand((), generator=gen).item() < 0.5:  # a random string instead, seldom balanced
                s = torch.randint(0, 2, (length,), generator=gen).tolist()
            self.x[i] = torch.tensor(s)
        depth = (1 - 2 * self.x).cumsum(1)
        self.y = ((depth >= 0).all(1) & (depth[:, -1] == 0)).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Classifier(nn.Module):
    def __init__(self, d=32, length=16):
        super().__init__()
        self.tok = nn.Embedding(2, d)
        self.pos = nn.Parameter(0.2 * torch.randn(length, d))
        layer = nn.TransformerEncoderLayer(d, 4, 64, dropout=0.1, batch_first=True, norm_first=True, activation="gelu")
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, 2)

    def forward(self, ids):
        return self.head(self.norm(self.body(self.tok(ids) + self.pos)).mean(1))


def endless(loader, sampler):
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def evaluate(net, rank):
    """Each rank scores its half of the validation set; the counts are summed."""
    data = BracketDataset(96, seed=SEED + 777)
    net.eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        hit = (net(data.x[rank::WORLD]).argmax(-1) == data.y[rank::WORLD]).sum()
    net.train()
    stats = torch.tensor([hit.item(), len(data.y[rank::WORLD])], dtype=torch.float64)
    dist.all_reduce(stats)
    return (stats[0] / stats[1]).item()


def worker(rank, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD)
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    net = Classifier()
    model = DDP(net)
    torch.manual_seed(SEED + 1 + rank)  # dropout differs between the ranks, the weights do not
    data = BracketDataset(448, seed=SEED)
    sampler = DistributedSampler(data, WORLD, rank, shuffle=True, seed=SEED, drop_last=True)
    batches = endless(DataLoader(data, batch_size=MICRO, sampler=sampler, drop_last=True), sampler)
    opt = torch.optim.AdamW(model.parameters(), lr=1.5e-3, betas=(0.9, 0.98), weight_decay=0.01)
    warm = 2
    sched = torch.optim.lr_scheduler.LambdaLR(
        opt, lambda s: min((s + 1) / warm, 0.5 * (1 + math.cos(math.pi * min(1.0, max(0, s - warm) / max(1, STEPS - warm))))))

    for step in range(STEPS):
        opt.zero_grad(set_to_none=True)
        total = torch.zeros(())
        for micro in range(ACCUM):
            x, y = next(batches)
            last = micro == ACCUM - 1
            with contextlib.nullcontext() if last else model.no_sync():
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    logits = model(x)
                loss = F.cross_entropy(logits.float(), y) / ACCUM
                loss.backward()
            total += loss.detach()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        dist.all_reduce(total)
        if rank == 0:
            print(f"{step} loss {total.item() / WORLD:.4f} norm {norm.item():.3f} lr {sched.get_last_lr()[0]:.5f}", flush=True)

    acc = evaluate(net, rank)
    if rank == 0:
        print(f"accuracy {acc:.3f}", flush=True)
    dist.destroy_process_group()


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(port,), nprocs=WORLD)


if __name__ == "__main__":
    main()
