"""Two stages, micro-batches all forward then all backward, activations and their gradients by send and recv."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
MICRO, SIZE, WIDTH = 3, 6, 12


def first_stage(model, opt, step):
    g = torch.Generator().manual_seed(1000 * SEED + step)
    sent = []
    for m in range(MICRO):
        x = torch.randn(SIZE, 8, generator=g)
        h = model(x)
        dist.send(h.detach(), dst=1, tag=m)
        dist.send(x[:, :3].argmax(1), dst=1, tag=100 + m)
        sent.append(h)
    opt.zero_grad()
    for m, h in enumerate(sent):
        grad = torch.empty_like(h)
        dist.recv(grad, src=1, tag=200 + m)
        h.backward(grad)
    opt.step()


def last_stage(model, opt, step):
    losses, inputs = [], []
    for m in range(MICRO):
        h = torch.empty(SIZE, WIDTH)
        dist.recv(h, src=0, tag=m)
        y = torch.empty(SIZE, dtype=torch.long)
        dist.recv(y, src=0, tag=100 + m)
        h.requires_grad_()
        losses.append(nn.functional.cross_entropy(model(h), y) / MICRO)
        inputs.append(h)
    opt.zero_grad()
    for m in range(MICRO):
        losses[m].backward()
        dist.send(inputs[m].grad, dst=0, tag=200 + m)
    opt.step()
    print(step, sum(x.item() for x in losses), flush=True)


def main(rank, file):
    dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=2)
    torch.manual_seed(SEED + rank)
    if rank == 0:
        model, run = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, WIDTH), nn.ReLU()), first_stage
    else:
        model, run = nn.Sequential(nn.Linear(WIDTH, 24), nn.ReLU(), nn.Linear(24, 3)), last_stage
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        run(model, opt, step)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(main, args=(tempfile.mktemp(),), nprocs=2, start_method="fork")
