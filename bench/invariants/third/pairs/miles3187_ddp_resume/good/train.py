"""Two data-parallel ranks train an image classifier, stop at a checkpoint and go on from it."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD, SAVE_AT, BATCH, CLASSES = 2, 3, 16, 4


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.GroupNorm(4, 16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.GroupNorm(4, 32), nn.ReLU())
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(32 * 9, CLASSES))

    def forward(self, x):
        return self.head(self.features(x))


class Bars:
    """Images with a bar in one of four directions; a rank reads every WORLD-th sample."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, CLASSES, (n,), generator=g)
        self.x = 0.3 * torch.randn(n, 1, 12, 12, generator=g)
        i = torch.arange(12)
        for image, label in zip(self.x, self.y.tolist()):
            k = int(torch.randint(3, 9, (), generator=g))
            rows, cols = [(i * 0 + k, i), (i, i * 0 + k), (i, i), (i, 11 - i)][label]
            image[0, rows, cols] += 1.5

    def batch(self, step, rank):
        rows = (torch.arange(BATCH) * WORLD + rank + step * BATCH * WORLD) % len(self.y)
        return self.x[rows], self.y[rows]


def augment(x):
    shift = torch.randint(-1, 2, (2,)).tolist()
    x = torch.roll(x, shift, dims=(2, 3))
    return x + 0.1 * torch.randn_like(x)


class Checkpointer:
    def __init__(self, root):
        self.root = root

    def path(self, name):
        return os.path.join(self.root, name)

    def save(self, step, model, optimizer, scheduler):
        rank = dist.get_rank()
        if rank == 0:
            torch.save({"step": step, "model": model.module.state_dict(), "optimizer": optimizer.state_dict(),
                        "scheduler": scheduler.state_dict()}, self.path("trainer.pt"))
        torch.save({"cpu": torch.get_rng_state()}, self.path(f"rng_state_{rank}.pt"))
        dist.barrier()

    def load(self, model, optimizer, scheduler):
        rank = dist.get_rank()
        state = torch.load(self.path("trainer.pt"))
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        rng = torch.load(self.path(f"rng_state_{rank}.pt"))
        torch.set_rng_state(rng["cpu"])
        return state["step"]


def setup(rank):
    torch.manual_seed(SEED)
    model = DistributedDataParallel(Classifier())
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2 * STEPS)
    torch.manual_seed(SEED * 1000 + rank + 1)
    model.train()
    return model, optimizer, scheduler


def fit(rank, first, last, model, optimizer, scheduler, data):
    for step in range(first, last):
        x, y = data.batch(step, rank)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(augment(x)), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"step {step} loss {mean.item() / WORLD:.4f}", flush=True)


@torch.no_grad()
def evaluate(rank, model, data):
    model.eval()
    x, y = data.batch(0, rank)
    hits = (model.module(x).argmax(1) == y).float().mean()
    dist.all_reduce(hits)
    model.train()
    return hits.item() / WORLD


def train(rank, root):
    checkpointer = Checkpointer(root)
    data, held_out = Bars(192, SEED), Bars(BATCH * WORLD, SEED + 1)
    model, optimizer, scheduler = setup(rank)
    fit(rank, 0, SAVE_AT, model, optimizer, scheduler, data)
    checkpointer.save(SAVE_AT, model, optimizer, scheduler)
    del model, optimizer, scheduler

    model, optimizer, scheduler = setup(rank)
    start = checkpointer.load(model, optimizer, scheduler)
    if rank == 0:
        print(f"resumed at step {start}", flush=True)
    fit(rank, start, STEPS, model, optimizer, scheduler, data)
    accuracy = evaluate(rank, model, held_out)
    if rank == 0:
        print(f"accuracy {accuracy:.3f}")


def entry(rank, root):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{root}/store", rank=rank, world_size=WORLD)
    try:
        train(rank, root)
        dist.barrier()
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as root:
        mp.start_processes(entry, args=(root,), nprocs=WORLD, start_method="fork")
