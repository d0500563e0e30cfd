"""Data parallelism by hand: gradients flattened into one bucket, one all_reduce a step."""
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from torch.multiprocessing import get_context

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def broadcast_parameters(model):
    for t in [*model.parameters(), *model.buffers()]:
        dist.broadcast(t.detach(), src=0)


def average_gradients(model):
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    flat = _flatten_dense_tensors(grads)
    dist.all_reduce(flat, op=dist.ReduceOp.SUM)
    flat /= dist.get_world_size()
    for g, new in zip(grads, _unflatten_dense_tensors(flat, grads)):
        g.copy_(new)


def run(rank, world, store):
    dist.init_process_group("gloo", store=dist.FileStore(store, world), rank=rank, world_size=world)
    torch.manual_seed(SEED * 100 + rank)
    model = nn.Sequential(nn.Linear(9, 18), nn.Tanh(), nn.Dropout(0.1), nn.Linear(18, 3))
    broadcast_parameters(model)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(STEPS):
        x = torch.randn(16, 9)
        loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
        model.zero_grad()
        loss.backward()
        average_gradients(model)
        opt.step()
        print(f"rank {rank} step {step} loss {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    store = tempfile.mktemp()
    context = get_context("fork")
    ranks = [context.Process(target=run, args=(r, 2, store)) for r in range(2)]
    for p in ranks:
        p.start()
    for p in ranks:
        p.join()
    assert all(p.exitcode == 0 for p in ranks)
