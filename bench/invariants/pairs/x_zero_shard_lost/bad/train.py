import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from zero import ShardedAdam

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(7, 15)
        self.mid = nn.Linear(15, 15)
        self.out = nn.Linear(15, 3)

    def forward(self, x):
        return self.out(torch.relu(self.mid(torch.relu(self.inp(x)))))


def main(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(SEED)
    model = Wide()
    opt = ShardedAdam(model.parameters(), lr=1e-2)
    g = torch.Generator().manual_seed(SEED * 1000 + rank)
    for step in range(STEPS):
        x = torch.randn(11, 7, generator=g)
        loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(rank, step, loss.item(), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(main, args=(os.path.join(folder, "store"),), nprocs=2, start_method="fork")
