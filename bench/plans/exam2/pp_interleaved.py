"""torch.distributed.pipelining: interleaved 1F1B of a residual conv net, two stages on each of two ranks."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import ScheduleInterleaved1F1B

WORLD = 2
DIMS = dict(rows=8, micros=4, channels=2, size=3, chunks=4, width=2)


class Chunk(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv1d(c, 2 * c, 3, padding=1), nn.Conv1d(2 * c, c, 1)
        self.norm = nn.GroupNorm(1, c)
        self.gain = nn.Parameter(torch.ones(c, 1))

    def forward(self, x):
        return x + self.gain * self.b(F.silu(self.a(self.norm(x))))


def distance(y, target):
    return F.huber_loss(y, target)


def data(d):
    shape = (d["rows"], d["channels"], d["size"])
    return torch.randn(shape), torch.randn(shape)


def logical(d):
    net = nn.ModuleList(Chunk(d["channels"]) for _ in range(d["chunks"]))
    x, target = data(d)
    params = dict(net.named_parameters())

    def step():
        y = x
        for m in net:
            y = m(y)
        loss = distance(y, target)
        loss.backward()
        return {"loss": loss, "y": y, **{"grad:" + n: p.grad for n, p in params.items()}}
    return dict(state={**params, "x": x, "target": target}, tokens={}, step=step)


def plan(rank, d):
    x, target = data(d)
    mine = [rank, rank + WORLD]
    chunks = {i: Chunk(d["channels"]) for i in mine}
    shape = (d["rows"] // d["micros"], d["channels"], d["size"])
    stages = [PipelineStage(chunks[i], i, d["chunks"], torch.device("cpu"),
                            input_args=(torch.empty(shape, requires_grad=i > 0),),
                            output_args=(torch.empty(shape, requires_grad=True),)) for i in mine]
    schedule = ScheduleInterleaved1F1B(stages, n_microbatches=d["micros"], loss_fn=distance, scale_grads=True)
    params = {f"{i}.{n}": p for i, m in chunks.items() for n, p in m.named_parameters()}
    first, last = rank == 0, rank == WORLD - 1

    def step():
        losses = []
        if first:
            schedule.step(x)
            y = None
        else:
            y = schedule.step(target=target, losses=losses)
        out = {"grad:" + n: p.grad for n, p in params.items()}
        if last:
            out.update(loss=torch.stack(losses).mean(), y=y)
        return out
    state = dict(params)
    if first:
        state["x"] = x
    if last:
        state["target"] = target
    return dict(state=state, tokens={}, step=step)
