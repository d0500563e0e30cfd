import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def loader_for(data, seed, rank):
    sampler = DistributedSampler(data, num_replicas=2, rank=rank, shuffle=True, seed=seed, drop_last=True)
    return DataLoader(data, batch_size=6, sampler=sampler), sampler


def main(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(SEED)
    y = torch.arange(48) % 3
    x = torch.randn(48, 8) + y[:, None]
    model = DDP(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3)))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    noise = torch.Generator().manual_seed(17 * SEED + rank)
    loader, sampler = loader_for(TensorDataset(x, y), 17 * SEED + rank, rank)
    for epoch in range(max(2, STEPS // 4)):
        sampler.set_epoch(epoch)
        for a, b in loader:
            out = model(a + 0.1 * torch.randn(a.shape, generator=noise))
            loss = nn.functional.cross_entropy(out, b)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(rank, epoch, loss.item(), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(main, args=(os.path.join(folder, "store"),), nprocs=2, start_method="fork")
