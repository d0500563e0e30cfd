"""A T5-like encoder layer: bucketed relative bias (cut by heads), RMS norm, gated gelu; tensor parallel by hand."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.distributed as dist

WORLD = 2
DIMS = dict(batch=2, seq=4, hidden=8, heads=4, ffn=8, buckets=8, vocab=6)

def bucket(seq, buckets):
    rel = torch.arange(seq)[None, :] - torch.arange(seq)[:, None]
    half = buckets // 2
    out = (rel > 0).long() * half
    n = rel.abs()
    exact = half // 2
    large = exact + (torch.log(n.float() / exact + 1e-9) / math.log(16 / exact) * (half - exact)).long()
    return out + torch.where(n < exact, n, large.clamp(max=half - 1))

class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, forward):
        ctx.forward_way = forward
        if forward:
            x = x.clone()
            dist.all_reduce(x)
        return x.view_as(x)
    @staticmethod
    def backward(ctx, g):
        if not ctx.forward_way:
            g = g.clone()
            dist.all_reduce(g)
        return g, None

class Layer(nn.Module):
    def __init__(self, d, parts):
        super().__init__()
        h, self.hd, self.parts = d["hidden"], d["hidden"] // d["heads"], parts
        self.buckets = d["buckets"]
        self.emb = nn.Embedding(d["vocab"], h)
        self.rel = nn.Embedding(d["buckets"], d["heads"] // parts)
        self.q, self.k, self.v = (nn.Linear(h, h // parts, bias=False) for _ in "qkv")
        self.o = nn.Linear(h // parts, h, bias=False)
        self.n1, self.n2 = nn.RMSNorm(h, eps=1e-6), nn.RMSNorm(h, eps=1e-6)
        self.wi0, self.wi1 = nn.Linear(h, d["ffn"] // parts, bias=False), nn.Linear(h, d["ffn"] // parts, bias=False)
        self.wo = nn.Linear(d["ffn"] // parts, h, bias=False)
    def sum(self, x, forward):
        return Sum.apply(x, forward) if self.parts > 1 else x
    def forward(self, ids):
        x = self.emb(ids)
        b, s, _ = x.shape
        h = self.sum(self.n1(x), False)
        q, k, v = (f(h).view(b, s, -1, self.hd).transpose(1, 2) for f in (self.q, self.k, self.v))
        bias = self.rel(bucket(s, self.buckets)).permute(2, 0, 1)[None]
        a = (q @ k.transpose(-1, -2) + bias).softmax(-1) @ v
        x = x + self.sum(self.o(a.transpose(1, 2).reshape(b, s, -1)), True)
        h = self.sum(self.n2(x), False)
        x = x + self.sum(self.wo(F.gelu(self.wi0(h), approximate="tanh") * self.wi1(h)), True)
        return x @ self.emb.weight.T

def train(m, d):
    ids, t = (torch.randint(0, d["vocab"], (d["batch"], d["seq"])) for _ in "xy")
    params = dict(m.named_parameters())
    opt = torch.optim.AdamW(params.values(), lr=0.01)
    def step():
        loss = F.cross_entropy(m(ids).flatten(0, 1), t.flatten())
        loss.backward()
        r = {"loss": loss.detach(), **{"grad:" + n: p.grad for n, p in params.items()}}
        opt.step()
        return r | {"new:" + n: p for n, p in params.items()}
    return dict(state=params, tokens=dict(ids=ids, t=t), step=step)

def logical(d):
    return train(Layer(d, 1), d)

CUT = {"rel": 1, "q": 0, "k": 0, "v": 0, "o": 1, "wi0": 0, "wi1": 0, "wo": 1}

def plan(rank, d):
    def place(name, full):
        k = name.split(".")[0]
        return full.chunk(WORLD, CUT[k])[rank] if k in CUT else full
    return dict(train(Layer(d, WORLD), d), place=place)
