import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def mixed(model, x, y):
    with torch.autocast("cpu", torch.bfloat16):
        return nn.functional.cross_entropy(model(x).float(), y)


def main(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(SEED)
    model = DDP(nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4)))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    saved = {**scaler.state_dict(), "scale": 2.0**7}
    scaler.load_state_dict(saved)
    g = torch.Generator().manual_seed(100 * SEED + rank)
    model.train()
    for step in range(STEPS):
        x = torch.randn(16, 12, generator=g)
        loss = mixed(model, x, x[:, :4].argmax(1))
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        print(f"[{rank}] step {step} loss {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(main, args=(os.path.join(folder, "store"),), nprocs=2, start_method="fork")
