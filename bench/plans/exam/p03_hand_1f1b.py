"""Hand-written 1F1B over WORLD stages with batch_isend_irecv in the steady state; tied to p02's model; AdamW."""
import torch
import torch.distributed as dist
from p02_1f1b import Model, data, loss_fn, part

WORLD = 2
DIMS = dict(batch=4, seq=2, hidden=8, ffn=12, vocab=6, layers=4, micro=4)

def optimizer(params):
    return torch.optim.AdamW(params.values(), lr=0.01, weight_decay=0.1)

def finish(params, sq, opt, r):
    norm = sq.sqrt()
    scale = (1.0 / (norm + 1e-6)).clamp(max=1.0)
    r["gnorm"] = norm
    for n, p in params.items():
        p.grad.mul_(scale)
        r["grad:" + n] = p.grad
    opt.step()
    for n, p in params.items():
        r["new:" + n] = p
    return r

def logical(d):
    m = Model(d)
    x, t = data(d)
    params = dict(m.named_parameters())
    opt = optimizer(params)
    def step():
        loss = loss_fn(m(x), t)
        loss.backward()
        sq = torch.stack([p.grad.pow(2).sum() for p in params.values()]).sum()
        return finish(params, sq, opt, {"loss": loss.detach()})
    return dict(state=params, tokens=dict(x=x, t=t), step=step)

def plan(rank, d):
    per = d["layers"] // WORLD
    first, last = rank == 0, rank == WORLD - 1
    m = part(d, first, last, range(rank * per, (rank + 1) * per))
    x, t = data(d)
    params = dict(m.named_parameters())
    opt = optimizer(params)
    M = d["micro"]
    shape = (d["batch"] // M, d["seq"], d["hidden"])

    def exchange(send=None, to=None, frm=None):
        ops, buf = [], None
        if send is not None and 0 <= to < WORLD:
            ops.append(dist.P2POp(dist.isend, send.detach().contiguous(), to))
        if frm is not None and 0 <= frm < WORLD:
            buf = torch.empty(shape)
            ops.append(dist.P2POp(dist.irecv, buf, frm))
        if ops:
            for w in dist.batch_isend_irecv(ops):
                w.wait()
        return buf

    def step():
        losses, held = [], []
        def forward(i, h):
            if first:
                y = m(x.chunk(M)[i])
            else:
                h.requires_grad_()
                y = m(h)
            if last:
                y = loss_fn(y, t.chunk(M)[i]) / M
                losses.append(y.detach())
            held.append((h, y))
            return y
        def backward(g):
            h, y = held.pop(0)
            y.backward(g)
            return None if first else h.grad
        warm = min(WORLD - rank - 1, M)
        for i in range(warm):
            h = exchange(frm=rank - 1)
            exchange(send=forward(i, h), to=rank + 1)
        steady = M - warm
        h = exchange(frm=rank - 1) if steady else None
        for k in range(steady):
            y = forward(warm + k, h)
            g = None if last else exchange(send=y, to=rank + 1, frm=rank + 1)
            dx = backward(g)
            if k == steady - 1:
                exchange(send=dx, to=rank - 1)
            else:
                h = exchange(send=dx, to=rank - 1, frm=rank - 1)
        for _ in range(warm):
            g = exchange(frm=rank + 1)
            exchange(send=backward(g), to=rank - 1)
        sq = torch.stack([p.grad.pow(2).sum() for p in params.values()]).sum()
        dist.all_reduce(sq)
        r = {"loss": torch.stack(losses).sum()} if last else {}
        return finish(params, sq, opt, r)
    return dict(state=params, tokens=dict(x=x, t=t), step=step)
