import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from parallel import ColumnParallelLinear, RowParallelLinear, clip_grad_norm, mark
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class ParallelMlp(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.up, self.down = ColumnParallelLinear(d, 4 * d), RowParallelLinear(4 * d, d)
        for p in self.norm.parameters():
            mark(p, False)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, vocab=24, d=16, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(ParallelMlp(d) for _ in range(layers))
        self.head = nn.Linear(d, vocab)
        for m in (self.embed, self.head):
            for p in m.parameters():
                mark(p, False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def main(rank, file):
    dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=2)
    torch.manual_seed(SEED)
    model = Model()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    data = torch.Generator().manual_seed(SEED)  # all ranks of the group read the same batch
    for step in range(STEPS):
        ids = torch.randint(0, 24, (6, 5), generator=data)
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ((ids * 3 + 1) % 24).flatten())
        opt.zero_grad()
        loss.backward()
        norm = clip_grad_norm(list(model.parameters()), 1.0)
        opt.step()
        if rank == 0:
            print(step, loss.item(), norm.item(), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.start_processes(main, args=(tempfile.mktemp(),), nprocs=2, start_method="fork")
