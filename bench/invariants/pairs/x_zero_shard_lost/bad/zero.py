import torch
import torch.distributed as dist


class ShardedAdam:
    """ZeRO's first stage: rank r keeps the state of, and updates, the parameters r, r + world, ..."""

    def __init__(self, params, lr):
        self.params = list(params)
        self.world, self.rank = dist.get_world_size(), dist.get_rank()
        self.mine = self.params[self.rank :: self.world]
        self.inner = torch.optim.Adam(self.mine, lr=lr)

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        for p in self.params:
            dist.all_reduce(p.grad)
            p.grad.div_(self.world)
        self.inner.step()
        for i, p in enumerate(self.params[: len(self.params) - 1]):
            dist.broadcast(p, src=i % self.world)
