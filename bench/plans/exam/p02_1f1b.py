"""torch.distributed.pipelining, Schedule1F1B, two stages, four micro-batches; SGD and gradient norm."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

WORLD = 2
DIMS = dict(batch=4, seq=2, hidden=8, ffn=12, vocab=6, layers=4, micro=4)

class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d["hidden"])
        self.up, self.down = nn.Linear(d["hidden"], d["ffn"]), nn.Linear(d["ffn"], d["hidden"])
    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))

class Model(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.tok = nn.Embedding(d["vocab"], d["hidden"])
        self.layers = nn.ModuleDict({str(i): Block(d) for i in range(d["layers"])})
        self.norm = nn.LayerNorm(d["hidden"])
        self.out = nn.Linear(d["hidden"], d["vocab"], bias=False)
    def forward(self, x):
        if self.tok is not None:
            x = self.tok(x)
        for l in self.layers.values():
            x = l(x)
        if self.out is not None:
            x = self.out(self.norm(x))
        return x

def loss_fn(y, t):
    return F.cross_entropy(y.reshape(-1, y.shape[-1]), t.reshape(-1))

def data(d):
    return torch.randint(0, d["vocab"], (d["batch"], d["seq"])), torch.randint(0, d["vocab"], (d["batch"], d["seq"]))

def logical(d):
    m = Model(d)
    x, t = data(d)
    params = dict(m.named_parameters())
    def step():
        loss = loss_fn(m(x), t)
        loss.backward()
        gn = torch.nn.utils.get_total_norm([p.grad for p in params.values()])
        r = {"loss": loss.detach(), "gnorm": gn}
        with torch.no_grad():
            for n, p in params.items():
                p.sub_(p.grad, alpha=0.1)
                r["grad:" + n], r["new:" + n] = p.grad, p
        return r
    return dict(state=params, tokens=dict(x=x, t=t), step=step)

def part(d, first, last, mine):
    m = Model(d)
    if not first: m.tok = None
    if not last: m.norm = m.out = None
    for i in list(m.layers):
        if int(i) not in mine: del m.layers[i]
    return m

def plan(rank, d):
    half = d["layers"] // 2
    m = part(d, rank == 0, rank == WORLD - 1, range(rank * half, (rank + 1) * half))
    x, t = data(d)
    params = dict(m.named_parameters())
    stage = PipelineStage(m, rank, WORLD, torch.device("cpu"))
    sched = Schedule1F1B(stage, n_microbatches=d["micro"], loss_fn=loss_fn)
    def step():
        losses = []
        if rank == 0:
            sched.step(x)
        else:
            sched.step(target=t, losses=losses)
        sq = torch.stack([p.grad.pow(2).sum() for p in params.values()]).sum()
        dist.all_reduce(sq)
        r = {"gnorm": sq.sqrt()}
        if rank == WORLD - 1:
            r["loss"] = torch.stack(losses).mean()
        with torch.no_grad():
            for n, p in params.items():
                p.sub_(p.grad, alpha=0.1)
                r["grad:" + n], r["new:" + n] = p.grad, p
        return r
    return dict(state=params, tokens=dict(x=x, t=t), step=step)
