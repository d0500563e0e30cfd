import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def train(rank, world, file):
    dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=world)
    torch.manual_seed(SEED)
    model = DDP(nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(16, 16), nn.ReLU())], nn.Linear(16, 2)))
    opt = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=3e-3)
    g = torch.Generator().manual_seed(SEED * 10 + rank)
    for step in range(STEPS):
        x = torch.randn(12, 16, generator=g)
        loss = nn.functional.mse_loss(model(x), x[:, :2] * x[:, 2:4])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0:
            print(step, loss.item(), flush=True)
    opt.consolidate_state_dict(to=0)
    if rank == 0:
        print("states", len(opt.state_dict()["state"]))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(train, args=(2, tempfile.mktemp()), nprocs=2, start_method="fork")
