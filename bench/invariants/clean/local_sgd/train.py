import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
EVERY = 3


@torch.no_grad()
def average(model):
    for p in model.parameters():
        dist.all_reduce(p)
        p.div_(dist.get_world_size())


def main(rank, file):
    dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=2)
    torch.manual_seed(SEED)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    g = torch.Generator().manual_seed(1 + 2 * SEED + rank)
    for step in range(STEPS):
        x = torch.randn(16, 6, generator=g)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
        # Between two averages the ranks' weights differ, as they should.
        if (step + 1) % EVERY == 0 or step + 1 == STEPS:
            average(model)
            print(rank, step, loss.item(), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(main, args=(tempfile.mktemp(),), nprocs=2, start_method="fork")
