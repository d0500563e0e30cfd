"""Face embeddings on two ranks: data parallel, with an angular margin loss."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from arcface import ArcFaceLoss
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
PEOPLE, SIZE = 8, 16


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 32), nn.LayerNorm(32), nn.PReLU(), nn.Linear(32, SIZE))

    def forward(self, x):
        return self.body(x)


def faces(n):
    generator = torch.Generator().manual_seed(SEED)
    person = torch.arange(n) % PEOPLE
    look = torch.randn(PEOPLE, 20, generator=generator)
    return TensorDataset(look[person] + 0.7 * torch.randn(n, 20, generator=generator), person)


def worker(rank, world, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    torch.manual_seed(SEED)
    data = faces(128)
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=True, seed=SEED)
    loader = DataLoader(data, batch_size=16, sampler=sampler)

    model = DDP(Embedder())
    criterion = DDP(ArcFaceLoss(PEOPLE, SIZE))
    optimizer = torch.optim.SGD([*model.parameters(), *criterion.parameters()], lr=0.05, momentum=0.9)

    step, epoch = 0, 0
    model.train()
    while step < STEPS:
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            step += 1
            average = loss.detach().clone()
            dist.all_reduce(average)
            if rank == 0:
                print(f"epoch {epoch} step {step} loss {average.item() / world:.5f}", flush=True)
            if step == STEPS:
                break
        epoch += 1
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, args=(2, os.path.join(folder, "store")), nprocs=2)
