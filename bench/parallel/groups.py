"""Which ranks work together: rank = ((dp * PP + pp) * CP + cp) * TP + tp. One process is a group of one, which sends nothing."""
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass
class Group:
    size: int
    rank: int
    ranks: list
    handle: object = None
    scatter: bool = False  # sequence parallelism adds up by reduce-scatter

    def sum(self, x):
        if self.size > 1:
            dist.all_reduce(x, group=self.handle)
        return x

    def max(self, x):
        if self.size > 1:
            dist.all_reduce(x, op=dist.ReduceOp.MAX, group=self.handle)
        return x

    def gather(self, x, dim):
        if self.size == 1:
            return x
        parts = [torch.empty_like(x) for _ in range(self.size)]
        dist.all_gather(parts, x.contiguous(), group=self.handle)
        return torch.cat(parts, dim)

    def sum_mine(self, x, dim):
        """This rank's part of the sum: the others' parts of it do not come here."""
        parts = x.movedim(dim, 0).contiguous()
        mine = parts.new_empty(parts.shape[0] // self.size, *parts.shape[1:])
        dist.reduce_scatter_tensor(mine, parts, group=self.handle)
        return mine.movedim(0, dim).contiguous()

    def mine(self, x, dim):
        return x.chunk(self.size, dim)[self.rank]


def make_groups(**sizes):
    """{"dp": Group, "pp": ..., "cp": ..., "tp": ...}; every rank makes every group, in the same order."""
    if "RANK" not in os.environ:
        return {name: Group(1, 0, [0]) for name in sizes}
    dist.init_process_group("gloo")
    me, names = dist.get_rank(), list(sizes)
    every = torch.arange(dist.get_world_size()).view(*sizes.values())
    found = {}
    for axis, name in enumerate(names):
        for ranks in every.movedim(axis, -1).reshape(-1, sizes[name]).tolist():
            handle = dist.new_group(ranks)
            if me in ranks:
                found[name] = Group(sizes[name], ranks.index(me), ranks, handle)
    return found
