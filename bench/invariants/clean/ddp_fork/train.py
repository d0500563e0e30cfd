import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD = 2


def make_data():
    g = torch.Generator().manual_seed(SEED)
    y = torch.randint(0, 4, (90,), generator=g)
    return TensorDataset(torch.randn(90, 1, 6, 6, generator=g) + y[:, None, None, None], y)


def validate(model, loader):
    model.eval()
    seen = torch.zeros(2)
    with torch.no_grad():
        for x, y in loader:
            seen += torch.tensor([model(x).argmax(1).eq(y).sum(), len(y)])
    dist.all_reduce(seen)
    return (seen[0] / seen[1]).item()


def worker(rank, file):
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=WORLD)
    torch.manual_seed(SEED + rank)  # DDP broadcasts rank 0's weights
    net = nn.Sequential(nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(96, 4))
    ddp = DistributedDataParallel(net)
    opt = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    data = make_data()
    sampler = DistributedSampler(data, shuffle=True, seed=SEED)
    loader = DataLoader(data, batch_size=12, sampler=sampler)
    check = DataLoader(data, batch_size=30, sampler=DistributedSampler(data, shuffle=False))
    for epoch in range(max(1, STEPS // len(loader))):
        sampler.set_epoch(epoch)
        ddp.train()
        for x, y in loader:
            opt.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(ddp(x), y)
            loss.backward()
            opt.step()
        accuracy = validate(ddp.module, check)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy:.3f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(worker, (os.path.join(folder, "store"),), nprocs=WORLD, start_method="fork")
