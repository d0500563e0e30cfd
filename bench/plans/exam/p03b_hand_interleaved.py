"""Hand-written interleaved pipeline: 2 ranks, 2 chunks each, stage s on rank s % 2; isend/irecv with tags per edge."""
import torch
import torch.distributed as dist
from p02_1f1b import data, loss_fn, part
from p03_hand_1f1b import DIMS, finish, logical, optimizer

WORLD, CHUNKS = 2, 2
STAGES = WORLD * CHUNKS

def plan(rank, d):
    mods = {s: part(d, s == 0, s == STAGES - 1, [s]) for s in range(rank, STAGES, WORLD)}
    x, t = data(d)
    params = {k: p for m in mods.values() for k, p in m.named_parameters()}
    opt = optimizer(params)
    M = d["micro"]
    shape = (d["batch"] // M, d["seq"], d["hidden"])
    # order of (kind, stage, micro) on each rank: groups of WORLD micro-batches through each chunk
    fwd = [(s, i) for g in range(0, M, WORLD) for s in mods for i in range(g, g + WORLD)]
    bwd = [(s, i) for g in range(0, M, WORLD) for s in reversed(mods) for i in range(g, g + WORLD)]
    warm = min(len(fwd), (CHUNKS - 1) * WORLD + 2 * (WORLD - rank - 1))
    order = [("F",) + a for a in fwd[:warm]]
    for k in range(len(fwd) - warm):
        order += [("F",) + fwd[warm + k], ("B",) + bwd[k]]
    order += [("B",) + a for a in bwd[len(fwd) - warm:]]

    def step():
        losses, held, pending = [], {}, []
        def send(y, s, tag):
            pending.append(dist.isend(y.detach().contiguous(), s % WORLD, tag=tag))
        def recv(s, tag):
            buf = torch.empty(shape)
            dist.irecv(buf, s % WORLD, tag=tag).wait()
            return buf
        for kind, s, i in order:
            if kind == "F":
                if s == 0:
                    h = None
                    y = mods[s](x.chunk(M)[i])
                else:
                    h = recv(s - 1, 100 * s + i).requires_grad_()
                    y = mods[s](h)
                if s == STAGES - 1:
                    y = loss_fn(y, t.chunk(M)[i]) / M
                    losses.append(y.detach())
                else:
                    send(y, s + 1, 100 * (s + 1) + i)
                held[s, i] = h, y
            else:
                h, y = held.pop((s, i))
                y.backward(None if s == STAGES - 1 else recv(s + 1, 1000 + 100 * s + i))
                if s:
                    send(h.grad, s - 1, 1000 + 100 * (s - 1) + i)
        for w in pending:
            w.wait()
        sq = torch.stack([p.grad.pow(2).sum() for p in params.values()]).sum()
        dist.all_reduce(sq)
        r = {"loss": torch.stack(losses).sum()} if losses else {}
        return finish(params, sq, opt, r)
    return dict(state=params, tokens=dict(x=x, t=t), step=step)
