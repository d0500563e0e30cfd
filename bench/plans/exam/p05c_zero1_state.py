"""ZeRO-1 by hand, third step of Adam: moments are unknowns, each rank has rows of every parameter's moments."""
import torch
import torch.nn.functional as F
import torch.distributed as dist
from mlp import DIMS, TOKENS, Net, data

WORLD, LR, B1, B2, EPS, WD, STEP = 2, 0.01, 0.9, 0.95, 1e-8, 0.1, 3

def adamw(p, g, m, v):
    p.mul_(1 - LR * WD)
    m.mul_(B1).add_(g, alpha=1 - B1)
    v.mul_(B2).addcmul_(g, g, value=1 - B2)
    denom = (v / (1 - B2 ** STEP)).sqrt().add_(EPS)
    p.addcdiv_(m / (1 - B1 ** STEP), denom, value=-LR)

def moments(params, cut):
    return {k + n: torch.rand_like(cut(p.detach())) for k in ("m:", "v:") for n, p in params.items()}

def logical(d):
    net = Net(d)
    x, t = data(d)
    params = dict(net.named_parameters())
    mv = moments(params, lambda p: p)
    def step():
        loss = F.cross_entropy(net(x), t)
        loss.backward()
        r = {"loss": loss.detach()}
        with torch.no_grad():
            for n, p in params.items():
                adamw(p, p.grad, mv["m:" + n], mv["v:" + n])
                r["new:" + n], r["new:m:" + n], r["new:v:" + n] = p, mv["m:" + n], mv["v:" + n]
        return r
    return dict(state=dict(params, x=x, **mv), tokens=dict(t=t), step=step)

def plan(rank, d):
    net = Net(d)
    x, t = data(d, d["batch"] // WORLD)
    params = dict(net.named_parameters())
    mv = moments(params, lambda p: p.chunk(WORLD)[rank])
    def step():
        loss = F.cross_entropy(net(x), t)
        loss.backward()
        with torch.no_grad():
            mean = loss.detach() / WORLD
            dist.all_reduce(mean)
            r = {"loss": mean}
            for n, p in params.items():
                g = torch.empty_like(p.chunk(WORLD)[rank])
                dist.reduce_scatter_tensor(g, p.grad / WORLD)
                mine = p.chunk(WORLD)[rank].clone()
                adamw(mine, g, mv["m:" + n], mv["v:" + n])
                dist.all_gather_into_tensor(p, mine)
                r["new:" + n], r["new:m:" + n], r["new:v:" + n] = p, mv["m:" + n], mv["v:" + n]
        return r
    def place(name, full):
        return full.chunk(WORLD)[rank] if name in ("x", "t") or name[:2] in ("m:", "v:") else full
    return dict(state=dict(params, x=x, **mv), tokens=dict(t=t), step=step, place=place)
