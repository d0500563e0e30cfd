import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from comm import Averager
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3)
        self.scale = nn.Parameter(torch.ones(6, 1, 1))
        self.fc = nn.Linear(6 * 36, 3)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x) * self.scale).flatten(1))


def main(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(SEED)
    model = Cnn()
    averager = Averager(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    g = torch.Generator().manual_seed(3 * SEED + 1000 * rank)
    for step in range(STEPS):
        y = torch.randint(0, 3, (8,), generator=g)
        x = torch.randn(8, 1, 8, 8, generator=g) + y[:, None, None, None]
        model.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        averager.average()
        opt.step()
        print("rank %d step %d loss %.4f" % (rank, step, loss.item()), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(main, args=(tempfile.mktemp(),), nprocs=2, start_method="fork")
