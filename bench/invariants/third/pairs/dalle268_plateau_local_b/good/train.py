"""Data parallel training of a readmission model; each rank validates on its own shard."""
import itertools
import os
import socket
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD = 2
BATCH = 16
EVAL_EVERY = 2
FEATURES = 20


def make_data(n, seed):
    """Records sorted by date; the later half was written down with less care."""
    g = torch.Generator().manual_seed(seed)
    w = torch.randn(FEATURES, 2, generator=torch.Generator().manual_seed(77))
    x = torch.randn(n, FEATURES, generator=g)
    noise = 20 * torch.linspace(0.0, 1.0, n).pow(3)[:, None] * torch.randn(n, 2, generator=g)
    y = ((torch.tanh(x @ w) @ torch.tensor([[1.5], [-1.0]]) + noise.mean(1, keepdim=True)) > 0).float()
    return TensorDataset(x, y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(FEATURES, 64)
        self.fc2 = nn.Linear(64, 32)
        self.out = nn.Linear(32, 1)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        x = self.drop(F.relu(self.fc1(x)))
        return self.out(F.relu(self.fc2(x)))


def batches(loader, sampler):
    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        yield from loader


def average_all(value):
    value = value.clone()
    dist.all_reduce(value)
    return value / dist.get_world_size()


@torch.no_grad()
def validate(model, loader):
    model.eval()
    total, count = torch.zeros(()), 0
    for x, y in loader:
        total += F.binary_cross_entropy_with_logits(model(x), y, reduction="sum")
        count += len(y)
    model.train()
    return total / count


def main(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(SEED)
    model = DistributedDataParallel(Net())
    opt = torch.optim.Adam(model.parameters(), lr=2e-2)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=0, threshold=0.025)
    train = make_data(512, 10 + SEED)
    sampler = DistributedSampler(train, WORLD, rank, shuffle=True, seed=SEED)
    loader = DataLoader(train, BATCH, sampler=sampler)
    valid = make_data(128, 700 + SEED)
    size = len(valid) // WORLD
    shard = torch.utils.data.Subset(valid, range(rank * size, (rank + 1) * size))
    valid_loader = DataLoader(shard, 32)
    torch.manual_seed(1000 * SEED + rank)
    model.train()
    for step, (x, y) in zip(range(STEPS), batches(loader, sampler)):
        opt.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        loss.backward()
        opt.step()
        avg_loss = average_all(loss.detach())
        if rank == 0:
            print(f"step {step} loss {avg_loss.item():.4f} lr {opt.param_groups[0]['lr']:.4f}")
        if (step + 1) % EVAL_EVERY == 0:
            val_loss = validate(model.module, valid_loader)
            avg_val_loss = average_all(val_loss)
            scheduler.step(avg_val_loss)
            if rank == 0:
                print(f"  valid {avg_val_loss.item():.4f}")
    if rank == 0:
        with tempfile.TemporaryDirectory() as d:
            torch.save({"model": model.module.state_dict(), "scheduler": scheduler.state_dict()}, d + "/last.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free = s.getsockname()[1]
    mp.start_processes(main, args=(free,), nprocs=WORLD, start_method="fork")
