"""Pretraining of a language model on token files that are streamed, data parallel on two ranks, one pass."""

import glob
import os
import random
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from net import LossOf, TinyLM
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD = 2
VOCABULARY, LENGTH = 50, 16
ROWS, BATCH = 4, 4


def write_corpus(folder, files):
    """Each file has ROWS rows of tokens: a random walk over the vocabulary."""
    generator = torch.Generator().manual_seed(SEED)
    for i in range(files):
        walk = torch.randint(-3, 4, (ROWS, LENGTH + 1), generator=generator)
        start = torch.randint(0, VOCABULARY, (ROWS, 1), generator=generator)
        torch.save((start + walk.cumsum(1)) % VOCABULARY, os.path.join(folder, f"part-{i:05d}.pt"))


class TokenStream(IterableDataset):
    """The rows of this rank's share of the files."""

    def __init__(self, folder, rank, world, seed):
        files = sorted(glob.glob(os.path.join(folder, "part-*.pt")))
        random.Random(seed).shuffle(files)
        self.files = files[rank::world]

    def __iter__(self):
        for file in self.files:
            yield from torch.load(file)


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=WORLD)
    torch.manual_seed(SEED)
    model = DDP(LossOf(TinyLM(VOCABULARY)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    stream = TokenStream(folder, rank, WORLD, seed=1337 + SEED)
    loader = DataLoader(stream, batch_size=BATCH)
    model.train()
    for step, tokens in enumerate(loader, 1):
        loss = model(tokens)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if rank == 0:
            print(f"{step:3d} loss {loss.item():.5f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(folder, files=WORLD * STEPS)
        mp.start_processes(train, args=(folder,), nprocs=WORLD, start_method="fork")


if __name__ == "__main__":
    main()
