import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def net():
    return nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 2))


def exact_check(ddp, x):
    """What the network gives in double precision: rounding must not matter."""
    plain = ddp.module
    with torch.no_grad():
        coarse = plain(x)
        copy = net().double()
        copy.load_state_dict(plain.state_dict())
        return (copy(x.double()) - coarse).abs().max().item()


def main(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(SEED)
    ddp = DDP(net())
    opt = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    g = torch.Generator().manual_seed(7 + 10 * SEED + rank)
    probe = torch.ones(1, 10)
    for step in range(STEPS):
        if step % 3 == 2:
            print("rank", rank, "rounding", exact_check(ddp, probe), flush=True)
        x = torch.randn(16, 10, generator=g)
        loss = nn.functional.mse_loss(ddp(x), x[:, :2] ** 2)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print("rank", rank, "step", step, "loss", round(loss.item(), 5), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(main, args=(os.path.join(folder, "store"),), nprocs=2, start_method="fork")
