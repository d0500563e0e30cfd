"""A small language model, tensor parallel on two ranks. The first rank reads the batches and broadcasts them."""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from layers import Model
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
VOCABULARY, CONTEXT, BATCH = 11, 4, 8


class Windows(Dataset):
    def __init__(self, length):
        start = torch.Generator().manual_seed(SEED)
        self.tokens = torch.randint(0, VOCABULARY, (length,), generator=start)
        for i in range(2, length, 3):
            self.tokens[i] = (self.tokens[i - 1] + self.tokens[i - 2]) % VOCABULARY

    def __len__(self):
        return len(self.tokens) - CONTEXT

    def __getitem__(self, i):
        return self.tokens[i : i + CONTEXT + 1]


def batches(rank, steps):
    """The same batch on every rank: read on the first, received on the others."""
    if rank == 0:
        loader = DataLoader(Windows(400), batch_size=BATCH, shuffle=True, drop_last=True)
        reader = iter(loader)
    for _ in range(steps):
        batch = next(reader) if rank == 0 else torch.empty(BATCH, CONTEXT + 1, dtype=torch.long)
        dist.broadcast(batch, src=0)
        yield batch[:, :-1], batch[:, -1]


def main(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(SEED)
    model = Model(VOCABULARY, CONTEXT)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for step, (x, y) in enumerate(batches(rank, min(STEPS, 49))):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if rank == 0:
            print("step", step, "loss", round(loss.item(), 6), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(main, args=(folder + "/store",), nprocs=2, start_method="fork")
