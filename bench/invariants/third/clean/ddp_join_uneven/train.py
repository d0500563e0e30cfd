"""DDP on shards of different sizes: the join context lets the longer rank finish its epoch."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD, BATCH = 2, 16


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def make_site(n, gen):
    """Readings of a nonlinear sensor: temperature and humidity drive a drift that the model must predict."""
    t = torch.rand(n, 1, generator=gen) * 2 - 1
    h = torch.rand(n, 1, generator=gen) * 2 - 1
    noise = 0.1 * torch.randn(n, 6, generator=gen)
    mix = torch.cat([t, h, t * h, t ** 2, torch.sin(2 * h), t - h], 1)
    drift = torch.sin(3 * t) + 0.5 * h * t
    return mix + noise, drift + 0.02 * torch.randn(n, 1, generator=gen)


def shard_for(rank):
    """Rank 0 owns the larger site: STEPS batches; the other one a quarter less."""
    batches = STEPS if rank == 0 else max(1, STEPS - max(1, STEPS // 4))
    gen = torch.Generator().manual_seed(1000 * SEED + rank)
    return make_site(batches * BATCH, gen)


def loader_for(rank):
    data = torch.utils.data.TensorDataset(*shard_for(rank))
    return torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True,
                                       generator=torch.Generator().manual_seed(SEED + rank))


def evaluate(model, rank):
    """Mean squared error over both ranks' own validation sets, weighted by size."""
    x, y = make_site(100 + 20 * rank, torch.Generator().manual_seed(5000 + SEED + rank))
    model.eval()
    with torch.no_grad():
        total = F.mse_loss(model(x), y, reduction="sum")
    stats = torch.stack([total, torch.tensor(float(len(x)))])
    dist.all_reduce(stats)
    model.train()
    return (stats[0] / stats[1]).item()


def same_everywhere(model):
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    other = flat.clone()
    dist.broadcast(other, src=0)
    return torch.equal(flat, other)


def worker(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    model = DDP(net)
    # plain SGD: a rank that has run out of batches takes no optimizer steps, so it must hold no state
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    before = evaluate(net, rank)
    loader = loader_for(rank)
    if rank == 0:
        print(f"before {before:.4f}, batches on rank 0: {len(loader)}", flush=True)

    with model.join():
        for step, (x, y) in enumerate(loader):
            loss = F.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(f"rank {rank} step {step} loss {loss.item():.4f}", flush=True)

    # leaving join() copied the parameters of the last rank to all others
    assert same_everywhere(net)
    after = evaluate(net, rank)
    if rank == 0:
        print(f"after {after:.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(free_port(),), nprocs=WORLD)
