"""Soft mixture of experts (every slot a softmax over tokens of a sequence), expert parallel with all-to-all, data parallel."""
import torch
import torch.nn.functional as F
import torch.distributed as dist
from moe import AllToAll, experts

WORLD = 2
DIMS = dict(batch=4, seq=3, hidden=8, ffn=6, experts=4, slots=2)

def params(d, n):
    return {"phi": torch.randn(d["hidden"], d["experts"], d["slots"], requires_grad=True),
            "w1": torch.randn(n, d["hidden"], d["ffn"], requires_grad=True),
            "w2": torch.randn(n, d["ffn"], d["hidden"], requires_grad=True)}

def layer(x, p, run):
    logits = torch.einsum("bth,hes->btes", x, p["phi"])
    dispatch = logits.softmax(1)
    combine = logits.flatten(2).softmax(-1).view_as(logits)
    z = torch.einsum("btes,bth->ebsh", dispatch, x)
    b = x.shape[0]
    z = run(z.reshape(z.shape[0], -1, x.shape[-1]))
    return torch.einsum("btes,ebsh->bth", combine, z.view(-1, b, logits.shape[-1], x.shape[-1]))

def train(p, x, run, finish):
    opt = torch.optim.AdamW(p.values(), lr=0.05)
    def step():
        loss = (layer(x, p, run) - x).square().mean()
        loss.backward()
        r = {"loss": finish(p, loss.detach().clone())}
        r |= {"grad:" + n: t.grad for n, t in p.items()}
        opt.step()
        return r | {"new:" + n: t for n, t in p.items()}
    return dict(state=dict(p, x=x), tokens={}, step=step)

def logical(d):
    p = params(d, d["experts"])
    return train(p, torch.randn(d["batch"], d["seq"], d["hidden"]), lambda z: experts(z, p["w1"], p["w2"]), lambda p, l: l)

def plan(rank, d):
    n = d["experts"] // WORLD
    p = params(d, n)
    def run(z):
        e, s, h = z.shape
        z = AllToAll.apply(z).view(WORLD, n, s, h).transpose(0, 1).reshape(n, WORLD * s, h)
        z = experts(z, p["w1"], p["w2"])
        return AllToAll.apply(z.view(n, WORLD, s, h).transpose(0, 1).reshape(e, s, h))
    def finish(p, loss):
        dist.all_reduce(p["phi"].grad)
        for t in p.values():
            t.grad.div_(WORLD)
        dist.all_reduce(loss, op=dist.ReduceOp.AVG) if dist.get_backend() == "fake" else dist.all_reduce(loss.div_(WORLD))
        return loss
    def place(name, full):
        return full if name == "phi" else full.chunk(WORLD)[rank]
    return dict(train(p, torch.randn(d["batch"] // WORLD, d["seq"], d["hidden"]), run, finish), place=place)
