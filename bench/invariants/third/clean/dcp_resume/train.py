"""Sharded training, a distributed checkpoint half way, and a fresh job that resumes from it with everything restored."""
import os
import shutil
import socket
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD = 2


class Net(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.inp = nn.Linear(8, d)
        self.body = nn.ModuleList(nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
                                  for _ in range(2))
        self.out = nn.Linear(d, 1)

    def forward(self, x):
        h = self.inp(x)
        for layer in self.body:
            h = h + layer(h)
        return self.out(h)


class Stream:
    """Endless samples of a chirp; the position of each rank's generator is part of the job's state."""

    def __init__(self, rank):
        self.gen = torch.Generator().manual_seed(SEED * 10 + rank)

    def batch(self, n=32):
        base = torch.rand(n, 1, generator=self.gen)
        x = torch.cat([torch.sin((k + 1) * base) for k in range(8)], 1) + 0.01 * torch.randn(n, 8, generator=self.gen)
        return x, torch.sin(6 * base ** 2).squeeze(-1)


class Job(Stateful):
    def __init__(self, mesh, rank):
        self.rank = rank
        self.model = Net()
        for layer in self.model.body:
            fully_shard(layer, mesh=mesh)
        fully_shard(self.model, mesh=mesh)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, STEPS)
        self.stream = Stream(rank)
        self.step = 0

    def state_dict(self):
        model, opt = get_state_dict(self.model, self.opt)
        return {"model": model, "opt": opt, "sched": self.sched.state_dict(), "step": self.step,
                # one key per rank, as plain tensors are otherwise stored once for all ranks
                f"stream.{self.rank}": self.stream.gen.get_state()}

    def load_state_dict(self, state):
        set_state_dict(self.model, self.opt, model_state_dict=state["model"], optim_state_dict=state["opt"])
        self.sched.load_state_dict(state["sched"])
        self.step = state["step"]
        self.stream.gen.set_state(state[f"stream.{self.rank}"])

    def train(self, until, losses):
        while self.step < until:
            x, y = self.stream.batch()
            loss = F.mse_loss(self.model(x).squeeze(-1), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.sched.step()
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            losses.append(mean.item() / WORLD)
            if self.rank == 0:
                print(f"{self.step} loss {losses[-1]:.5f} lr {self.sched.get_last_lr()[0]:.5f}", flush=True)
            self.step += 1


def worker(rank, port, folder):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD)
    torch.set_num_threads(1)
    mesh = init_device_mesh("cpu", (WORLD,))
    half = max(1, STEPS // 2)

    torch.manual_seed(SEED)
    first = Job(mesh, rank)
    losses = []
    first.train(half, losses)
    dcp.save({"job": first}, checkpoint_id=folder)
    del first

    # a restarted job has other initial weights; all that matters must come from the checkpoint
    torch.manual_seed(SEED + 12345)
    second = Job(mesh, rank)
    dcp.load({"job": second}, checkpoint_id=folder)
    assert second.step == half
    if rank == 0:
        print(f"resumed at {second.step} lr {second.sched.get_last_lr()[0]:.5f}", flush=True)
    second.train(STEPS, losses)
    dist.barrier()
    dist.destroy_process_group()


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="dcp_")
    try:
        mp.spawn(worker, args=(port, folder), nprocs=WORLD)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
