import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
import contextlib


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(25, 10)
        self.lstm = nn.LSTM(10, 12, batch_first=True, bidirectional=True)
        self.tag = nn.Linear(24, 4)

    def forward(self, ids):
        return self.tag(self.lstm(self.emb(ids))[0])


def main(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(SEED)
    model = DDP(Tagger())
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    g = torch.Generator().manual_seed(SEED + 50 * rank)
    micro_batches = 3
    for step in range(STEPS):
        for i in range(micro_batches):
            ids = torch.randint(0, 25, (4, 6), generator=g)
            last = i == micro_batches
            with contextlib.nullcontext() if last else model.no_sync():
                loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), (ids % 4).flatten()) / micro_batches
                loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(step, loss.item(), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(main, args=(os.path.join(folder, "store"),), nprocs=2, start_method="fork")
