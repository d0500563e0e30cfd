import torch.distributed as dist


class Averager:
    """Buckets of gradients, largest first, so that the long transfers start early."""

    def __init__(self, model):
        order = sorted(model.parameters(), key=lambda p: -p.numel())
        self.buckets = [order[i : i + 2] for i in range(0, len(order), 2)]

    def average(self):
        work = []
        for bucket in self.buckets:
            for p in bucket:
                p.grad.div_(dist.get_world_size())
                work.append(dist.all_reduce(p.grad, async_op=True))
        for w in work:
            w.wait()
