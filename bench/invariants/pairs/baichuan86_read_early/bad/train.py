import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
BATCH, WIDTH = 10, 8


class Stage:
    def __init__(self, rank):
        torch.manual_seed(SEED + rank)
        self.rank = rank
        if rank == 0:
            self.net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, WIDTH))
        else:
            self.net = nn.Sequential(nn.Tanh(), nn.Linear(WIDTH, 16), nn.Tanh(), nn.Linear(16, 2))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.buffer = torch.zeros(BATCH, WIDTH)
        self.grad = torch.zeros(BATCH, WIDTH)

    def run(self, x, y):
        return self.first(x) if self.rank == 0 else self.last(y)

    def first(self, x):
        h = self.net(x)
        dist.barrier()  # the other side has posted its receive
        dist.send(h.detach(), dst=1)
        dist.recv(self.grad, src=1)
        self.opt.zero_grad()
        h.backward(self.grad)
        self.opt.step()

    def last(self, y):
        arrives = dist.irecv(self.buffer, src=0)
        h = self.buffer.clone().requires_grad_()
        dist.barrier()
        arrives.wait()
        loss = nn.functional.cross_entropy(self.net(h), y)
        self.opt.zero_grad()
        loss.backward()
        dist.send(h.grad, dst=0)
        self.opt.step()
        return loss.item()


def main(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    stage = Stage(rank)
    data = torch.Generator().manual_seed(SEED)
    for step in range(STEPS):
        x = torch.randn(BATCH, 6, generator=data)
        loss = stage.run(x, (x[:, 0] > x[:, 1]).long())
        if rank == 1:
            print(step, loss, flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(main, args=(tempfile.mktemp(),), nprocs=2, start_method="fork")
