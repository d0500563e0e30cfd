"""Data parallel with accumulation of micro-batches (no_sync), activation checkpoints, a loss scale, clipping, AdamW."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from mlp import TOKENS, Net, data

WORLD, MICRO, SCALE, CLIP = 2, 2, 1024.0, 1.0
DIMS = dict(batch=8, inp=6, hidden=8, ffn=10, classes=4)

class Deep(nn.Module):
    def __init__(self, d, save):
        super().__init__()
        self.a, self.b = Net(d), Net(d)
        self.mid = nn.Linear(d["classes"], d["inp"])
        self.save = save
    def forward(self, x):
        run = (lambda f, h: checkpoint(f, h, use_reentrant=False)) if self.save else (lambda f, h: f(h))
        return run(self.b, torch.tanh(self.mid(run(self.a, x))))

def update(params, opt, r):
    norm = sum(p.grad.pow(2).sum() for p in params.values()).sqrt()
    r["gnorm"] = norm
    for n, p in params.items():
        p.grad.mul_((CLIP / (norm + 1e-6)).clamp(max=1.0))
        r["grad:" + n] = p.grad
    opt.step()
    return r | {"new:" + n: p for n, p in params.items()}

def logical(d):
    net = Deep(d, False)
    x, t = data(d)
    params = dict(net.named_parameters())
    opt = torch.optim.AdamW(params.values(), lr=0.01)
    def step():
        loss = F.cross_entropy(net(x), t)
        loss.backward()
        return update(params, opt, {"loss": loss.detach()})
    return dict(state=dict(params, x=x), tokens=dict(t=t), step=step)

def plan(rank, d):
    net = Deep(d, True)
    x, t = data(d, d["batch"] // WORLD)
    params = dict(net.named_parameters())
    ddp = DistributedDataParallel(net)
    opt = torch.optim.AdamW(params.values(), lr=0.01)
    def step():
        total = torch.zeros(())
        xs, ts = x.chunk(MICRO), t.chunk(MICRO)
        for i in range(MICRO):
            ddp.require_backward_grad_sync = i == MICRO - 1
            loss = F.cross_entropy(ddp(xs[i]), ts[i]) / MICRO
            (loss * SCALE).backward()
            total += loss.detach()
        for p in params.values():
            p.grad.div_(SCALE)
        dist.all_reduce(total)
        return update(params, opt, {"loss": total / WORLD})
    def place(name, full):
        return full.chunk(WORLD)[rank] if name in ("x", "t") else full
    return dict(state=dict(params, x=x), tokens=dict(t=t), step=step, place=place)
