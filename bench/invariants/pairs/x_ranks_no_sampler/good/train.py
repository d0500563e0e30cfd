import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Field(Dataset):
    """Samples of a smooth function on the square."""

    def __init__(self, n=64):
        g = torch.Generator().manual_seed(SEED)
        self.at = torch.rand(n, 2, generator=g)

    def __len__(self):
        return len(self.at)

    def __getitem__(self, i):
        p = self.at[i]
        return {"at": p, "value": (6 * p[0]).sin() * (4 * p[1]).cos()}


class Siren(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(2, 32), nn.Linear(32, 32), nn.Linear(32, 1)

    def forward(self, at):
        return self.c(torch.sin(self.b(torch.sin(5 * self.a(at))))).squeeze(-1)


def main(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(SEED)
    field = Field()
    sampler = DistributedSampler(field, 2, rank, shuffle=True)
    loader = DataLoader(field, batch_size=8, sampler=sampler)
    model = DDP(Siren())
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(max(1, STEPS // 4)):
        if isinstance(loader.sampler, DistributedSampler):
            loader.sampler.set_epoch(epoch)
        for batch in loader:
            opt.zero_grad()
            loss = (model(batch["at"]) - batch["value"]).abs().mean()
            loss.backward()
            opt.step()
        if rank == 0:
            print("epoch", epoch, "loss", loss.item(), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(main, args=(os.path.join(folder, "store"),), nprocs=2, start_method="fork")
