"""Tensor parallel language model: vocabulary cut of a tied embedding, vocabulary-parallel cross entropy; AdamW."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed as dist

WORLD = 2
DIMS = dict(batch=2, seq=3, hidden=8, ffn=8, vocab=8)

class AllReduce(torch.autograd.Function):
    """Adds up in one direction, passes in the other."""
    @staticmethod
    def forward(ctx, x, forward):
        ctx.fwd = forward
        if forward:
            x = x.clone()
            dist.all_reduce(x)
            return x
        return x.view_as(x)
    @staticmethod
    def backward(ctx, g):
        if not ctx.fwd:
            g = g.clone()
            dist.all_reduce(g)
        return g, None

class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, t, lo):
        top = logits.amax(-1)
        dist.all_reduce(top, op=dist.ReduceOp.MAX)
        e = (logits - top[:, None]).exp()
        total = e.sum(-1)
        dist.all_reduce(total)
        mine = (t >= lo) & (t < lo + logits.shape[-1])
        i = torch.where(mine, t - lo, 0)
        hit = torch.where(mine, logits.gather(-1, i[:, None])[:, 0], 0.0)
        dist.all_reduce(hit)
        ctx.save_for_backward(e / total[:, None], mine, i)
        return total.log() + top - hit
    @staticmethod
    def backward(ctx, g):
        p, mine, i = ctx.saved_tensors
        d = p.clone()
        d.scatter_add_(-1, i[:, None], -mine.to(p.dtype)[:, None])
        return d * g[:, None], None, None

class Model(nn.Module):
    def __init__(self, d, parts, rank):
        super().__init__()
        self.parts, self.lo = parts, rank * d["vocab"] // parts
        self.emb = nn.Parameter(torch.randn(d["vocab"] // parts, d["hidden"]))
        self.norm = nn.LayerNorm(d["hidden"])
        self.up = nn.Linear(d["hidden"], d["ffn"] // parts)
        self.down = nn.Linear(d["ffn"] // parts, d["hidden"], bias=False)
        self.bias = nn.Parameter(torch.randn(d["hidden"]))
    def fwd(self, x):
        return AllReduce.apply(x, True) if self.parts > 1 else x
    def bwd(self, x):
        return AllReduce.apply(x, False) if self.parts > 1 else x
    def forward(self, ids, t):
        mine = (ids >= self.lo) & (ids < self.lo + len(self.emb))
        x = F.embedding(torch.where(mine, ids - self.lo, 0), self.emb)
        x = self.fwd(x.masked_fill(~mine[..., None], 0.0))
        x = x + self.fwd(self.down(torch.tanh(self.up(self.bwd(self.norm(x)))))) + self.bias
        logits = (self.bwd(x) @ self.emb.T).flatten(0, 1)
        if self.parts > 1:
            return CrossEntropy.apply(logits, t.flatten(), self.lo).mean()
        return F.cross_entropy(logits, t.flatten())

def train(m, d):
    ids, t = (torch.randint(0, d["vocab"], (d["batch"], d["seq"])) for _ in "xy")
    params = dict(m.named_parameters())
    opt = torch.optim.AdamW(params.values(), lr=0.01)
    def step():
        loss = m(ids, t)
        loss.backward()
        r = {"loss": loss.detach(), **{"grad:" + n: p.grad for n, p in params.items()}}
        opt.step()
        return r | {"new:" + n: p for n, p in params.items()}
    return dict(state=params, tokens=dict(ids=ids, t=t), step=step)

def logical(d):
    return train(Model(d, 1, 0), d)

CUT = {"emb": 0, "up.weight": 0, "up.bias": 0, "down.weight": 1}

def plan(rank, d):
    def place(name, full):
        return full.chunk(WORLD, CUT[name])[rank] if name in CUT else full
    return dict(train(Model(d, WORLD, rank), d), place=place)
