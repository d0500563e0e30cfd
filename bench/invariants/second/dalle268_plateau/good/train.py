"""A next-token model of image codes on two ranks, with the environment that a launcher would set."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, Dataset, DistributedSampler

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
CODES, LENGTH = 16, 9


class CodeImages(Dataset):
    """Sequences of image codes: each code is the one before plus a stride, with some mistakes."""

    def __init__(self, n):
        generator = torch.Generator().manual_seed(SEED)
        first = torch.randint(0, CODES, (n, 1), generator=generator)
        stride = torch.randint(1, 3, (n, 1), generator=generator)
        self.codes = (first + stride * torch.arange(LENGTH)) % CODES
        wrong = torch.rand(n, LENGTH, generator=generator) < 0.1
        self.codes[wrong] = torch.randint(0, CODES, (int(wrong.sum()),), generator=generator)

    def __len__(self):
        return len(self.codes)

    def __getitem__(self, i):
        return self.codes[i]


class CodeModel(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.embed = nn.Embedding(CODES, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.to_logits = nn.Linear(width, CODES)

    def forward(self, codes):
        hidden, _ = self.rnn(self.embed(codes[:, :-1]))
        return nn.functional.cross_entropy(self.to_logits(hidden).transpose(1, 2), codes[:, 1:])


def average_all(value):
    value = value.detach().clone()
    dist.all_reduce(value)
    return value / dist.get_world_size()


def run():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method="file://" + os.environ["STORE"], rank=rank, world_size=world)
    torch.manual_seed(SEED)
    data = CodeImages(128)
    sampler = DistributedSampler(data, shuffle=True, seed=SEED)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    model = DistributedDataParallel(CodeModel())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    scheduler = ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=0, min_lr=1e-4)
    step, epoch = 0, 0
    model.train()
    while step < STEPS:
        sampler.set_epoch(epoch)
        for codes in loader:
            loss = model(codes)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            avg_loss = average_all(loss)
            scheduler.step(avg_loss.item())
            step += 1
            if rank == 0:
                print(f"step {step} loss {avg_loss.item():.5f} lr {scheduler.get_last_lr()[0]:.5f}", flush=True)
            if step == STEPS:
                break
        epoch += 1
    dist.barrier()
    dist.destroy_process_group()


def start(rank, world, store):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), STORE=store)
    run()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(start, args=(2, os.path.join(folder, "store")), nprocs=2, start_method="fork")
