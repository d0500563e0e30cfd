import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sequence import SequenceParallelBlock, finalize_gradients
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def main(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(SEED)
    model = SequenceParallelBlock(8, 16)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.Generator().manual_seed(SEED)
    for step in range(STEPS):
        x = torch.randn(3, 6, 8, generator=data)
        loss = (model(x) - x.flip(-1)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        finalize_gradients(model)
        opt.step()
        if rank == 0:
            print(step, loss.item(), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(main, args=(tempfile.mktemp(),), nprocs=2, start_method="fork")
