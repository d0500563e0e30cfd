"""Token choice with indices: token t of a rank goes to expert ROUTE[rank][t] (a fixed uneven route); all_to_all_single by counts."""
import torch
import torch.nn.functional as F
import torch.distributed as dist

WORLD = 2
DIMS = dict(tokens=10, hidden=8, ffn=6, experts=4)
ROUTE = torch.tensor([[3, 0, 2, 0, 1], [1, 3, 0, 2, 2]])

def params(d, n):
    return {"gate": torch.randn(d["hidden"], d["experts"], requires_grad=True),
            "w1": torch.randn(n, d["hidden"], d["ffn"], requires_grad=True),
            "w2": torch.randn(n, d["ffn"], d["hidden"], requires_grad=True)}

def train(p, x, layer, finish):
    def step():
        loss = (layer(x) - x).square().mean()
        loss.backward()
        r = {"loss": finish(loss.detach().clone())}
        with torch.no_grad():
            for n, t in p.items():
                r["grad:" + n] = t.grad
                t.sub_(t.grad, alpha=0.1)
                r["new:" + n] = t
        return r
    return dict(state=dict(p, x=x), tokens={}, step=step)

def logical(d):
    p = params(d, d["experts"])
    route = ROUTE.flatten()
    def layer(x):
        w = (x @ p["gate"]).softmax(-1).gather(-1, route[:, None])
        y = torch.zeros_like(x)
        for e in range(d["experts"]):
            i = (route == e).nonzero().squeeze(-1)
            y = y.index_add(0, i, F.silu(x[i] @ p["w1"][e]) @ p["w2"][e])
        return y * w
    return train(p, torch.randn(d["tokens"], d["hidden"]), layer, lambda l: l)

class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, outs, ins):
        ctx.sizes = ins, outs
        y = x.new_empty(sum(outs), x.shape[1])
        dist.all_to_all_single(y, x.contiguous(), outs, ins)
        return y
    @staticmethod
    def backward(ctx, g):
        outs, ins = ctx.sizes
        y = g.new_empty(sum(outs), g.shape[1])
        dist.all_to_all_single(y, g.contiguous(), outs, ins)
        return y, None, None

def plan(rank, d):
    n = d["experts"] // WORLD
    p = params(d, n)
    route = ROUTE[rank]
    order = route.argsort(stable=True)
    ins = [int((route // n == r).sum()) for r in range(WORLD)]
    outs = [int((ROUTE[r] // n == rank).sum()) for r in range(WORLD)]
    arrived = torch.cat([ROUTE[r][ROUTE[r] // n == rank].sort().values for r in range(WORLD)])
    def layer(x):
        w = (x @ p["gate"]).softmax(-1).gather(-1, route[:, None])
        z = AllToAll.apply(x[order], outs, ins)
        y = torch.zeros_like(z)
        for e in range(n):
            i = (arrived == rank * n + e).nonzero().squeeze(-1)
            y = y.index_add(0, i, F.silu(z[i] @ p["w1"][e]) @ p["w2"][e])
        y = AllToAll.apply(y, ins, outs)
        back = order.argsort()
        return y[back] * w
    def finish(loss):
        dist.all_reduce(p["gate"].grad)
        for t in p.values():
            t.grad.div_(WORLD)
        dist.all_reduce(loss)
        return loss / WORLD
    def place(name, full):
        return full if name == "gate" else full.chunk(WORLD)[rank]
    return dict(train(p, torch.randn(d["tokens"] // WORLD, d["hidden"]), layer, finish), place=place)
