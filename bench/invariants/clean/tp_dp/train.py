"""Four ranks: two data parallel groups of two tensor parallel ranks. Rank = 2 * dp + tp."""
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
TP, DP = 2, 2


class Groups:
    def __init__(self, rank):
        self.tp_rank, self.dp_rank = rank % TP, rank // TP
        for d in range(DP):
            g = dist.new_group([d * TP + t for t in range(TP)])
            if d == self.dp_rank:
                self.tp = g
        for t in range(TP):
            g = dist.new_group([d * TP + t for d in range(DP)])
            if t == self.tp_rank:
                self.dp = g


class AllReduce(torch.autograd.Function):
    """forward: sum over the group or nothing; backward: the other one."""

    @staticmethod
    def forward(ctx, x, group, in_forward):
        ctx.group, ctx.in_forward = group, in_forward
        if in_forward:
            x = x.clone()
            dist.all_reduce(x, group=group)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        if not ctx.in_forward:
            g = g.clone()
            dist.all_reduce(g, group=ctx.group)
        return g, None, None


class Mlp(nn.Module):
    def __init__(self, d, groups):
        super().__init__()
        self.groups = groups
        h = 4 * d // TP
        up, down = torch.randn(4 * d, d) * d**-0.5, torch.randn(d, 4 * d) * (4 * d) ** -0.5
        rows = slice(groups.tp_rank * h, (groups.tp_rank + 1) * h)
        self.norm = nn.LayerNorm(d)
        self.up, self.down = nn.Parameter(up[rows].clone()), nn.Parameter(down[:, rows].clone())
        self.bias = nn.Parameter(torch.zeros(d))
        for p in self.parameters():
            p.tensor_model_parallel = p is self.up or p is self.down

    def forward(self, x):
        h = AllReduce.apply(self.norm(x), self.groups.tp, False)
        h = torch.relu(h @ self.up.T) @ self.down.T
        return x + AllReduce.apply(h, self.groups.tp, True) + self.bias


def main(rank, file):
    dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=TP * DP)
    groups = Groups(rank)
    torch.manual_seed(SEED)
    model = nn.Sequential(nn.Linear(10, 8), Mlp(8, groups), Mlp(8, groups), nn.Linear(8, 3))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    data = torch.Generator().manual_seed(100 * SEED + groups.dp_rank)
    for step in range(STEPS):
        x = torch.randn(8, 10, generator=data)
        loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
        opt.zero_grad()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad, group=groups.dp)
            p.grad.div_(DP)
        opt.step()
        if rank == 0:
            print(step, loss.item(), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    mp.start_processes(main, args=(tempfile.mktemp(),), nprocs=TP * DP, start_method="fork")
