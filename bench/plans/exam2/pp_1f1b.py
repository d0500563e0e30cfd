"""Pipeline by hand (1F1B) times data parallel: a GPT-like net, tied embedding and head on the first and the last stage,
token masks that make micro-batches weigh unequally, loss scale, clipping over all stages."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

WORLD = ("dp", "pp")
DIMS = dict(dp=2, pp=2, micros=3, rows=4, seq=2, vocab=5, width=4, layers=2)
SCALE, LIMIT, LR = 1024.0, 0.2, 0.1


class Layer(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.norm, self.qkv, self.o, self.fc = nn.LayerNorm(w), nn.Linear(w, 3 * w), nn.Linear(w, w), nn.Linear(w, w)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.o(F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], is_causal=True)[:, 0])
        return x + F.gelu(self.fc(x), approximate="tanh")


class Stage(nn.Module):
    def __init__(self, d, first, last, layers):
        super().__init__()
        w = d["width"]
        self.first, self.last = first, last
        if first or last:
            self.emb = nn.Parameter(torch.randn(d["vocab"], w))
        if first:
            self.pos = nn.Parameter(torch.randn(d["seq"], w))
        self.layers = nn.ModuleDict({str(i): Layer(w) for i in layers})
        if last:
            self.norm = nn.LayerNorm(w)

    def forward(self, x):
        if self.first:
            x = F.embedding(x, self.emb) + self.pos
        for m in self.layers.values():
            x = m(x)
        return self.norm(x) @ self.emb.t() if self.last else x


def token_losses(logits, labels, mask):
    loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    return (loss * mask.flatten()).sum()


def finish(params, square):
    """Clips and steps, with the square of the whole norm."""
    norm = square.sqrt()
    with torch.no_grad():
        for p in params.values():
            p.grad.mul_(torch.clamp(LIMIT / (norm + 1e-6), max=1.0))
            p.sub_(LR * p.grad)
    return {"norm": norm, **{"grad:" + n: p.grad for n, p in params.items()}, **{"new:" + n: p for n, p in params.items()}}


def batch(d, parts):
    m, r, s = d["micros"], d["rows"] // parts, d["seq"]
    return (torch.zeros(m, r, s, dtype=torch.long), torch.zeros(m, r, s, dtype=torch.long), torch.rand(m, r, s))


def logical(d):
    net = Stage(d, True, True, range(d["layers"]))
    params = dict(net.named_parameters())
    ids, labels, mask = batch(d, 1)

    def step():
        loss = sum(token_losses(net(ids[i]), labels[i], mask[i]) for i in range(d["micros"])) / mask.sum()
        loss.backward()
        return {"loss": loss, **finish(params, sum(p.grad.square().sum() for p in params.values()))}
    return dict(state={**params, "pos_mask": mask}, tokens={"ids": ids, "labels": labels}, step=step)


def plan(rank, d):
    dp, pp, micros = d["dp"], d["pp"], d["micros"]
    data, stage = divmod(rank, pp)
    data_groups = [dist.new_group([i * pp + s for i in range(dp)]) for s in range(pp)]
    pipe_groups = [dist.new_group([i * pp + s for s in range(pp)]) for i in range(dp)]
    ends = [dist.new_group([i * pp, i * pp + pp - 1]) for i in range(dp)]
    data_group, pipe_group, end_group = data_groups[stage], pipe_groups[data], ends[data]
    first, last = stage == 0, stage == pp - 1
    per = d["layers"] // pp
    net = Stage(d, first, last, range(stage * per, (stage + 1) * per))
    params = dict(net.named_parameters())
    ids, labels, mask = batch(d, dp)
    shape = (d["rows"] // dp, d["seq"], d["width"])

    def step():
        count = mask.sum()
        dist.all_reduce(count, group=data_group)
        inputs, outputs, losses, sent = {}, {}, [], []

        def send(t, to):
            t = t.contiguous()
            sent.append((dist.isend(t, to), t))

        def forward(i):
            if first:
                x = ids[i]
            else:
                x = torch.empty(shape)
                dist.recv(x, rank - 1)
                x.requires_grad_()
            y = net(x)
            if last:
                y = token_losses(y, labels[i], mask[i]) / count
                losses.append(y.detach())
            else:
                send(y.detach(), rank + 1)
            inputs[i], outputs[i] = x, y

        def backward(i):
            y = outputs.pop(i)
            if last:
                (y * SCALE).backward()
            else:
                g = torch.empty(shape)
                dist.recv(g, rank + 1)
                y.backward(g)
            x = inputs.pop(i)
            if not first:
                send(x.grad, rank - 1)

        warm = pp - 1 - stage
        for i in range(warm):
            forward(i)
        for i in range(micros - warm):
            forward(i + warm)
            backward(i)
        for i in range(micros - warm, micros):
            backward(i)

        for work, _ in sent:
            work.wait()

        if first or last:
            dist.all_reduce(net.emb.grad, group=end_group)
        square = torch.zeros(())
        for n, p in params.items():
            dist.all_reduce(p.grad, group=data_group)
            p.grad.div_(SCALE)
            if n == "emb" and not first:
                continue  # the first stage counts it
            square += p.grad.square().sum()
        dist.all_reduce(square, group=pipe_group)
        out = finish(params, square)
        if last:
            loss = torch.stack(losses).sum()
            dist.all_reduce(loss, group=data_group)
            out["loss"] = loss
        return out

    def place(name, full):
        return full.chunk(dp, 1)[data] if name in ("ids", "labels", "pos_mask") else full
    return dict(state={**params, "pos_mask": mask}, tokens={"ids": ids, "labels": labels}, step=step, place=place)
