"""Expert parallelism, GShard way: capacity, one_hot, cumsum, einsum dispatch; all-to-all there and back; SGD."""
import torch
import torch.nn.functional as F
import torch.distributed as dist

WORLD = 2
DIMS = dict(tokens=8, hidden=8, ffn=8, experts=4, cap=8)
TOKENS = dict(ids="experts")
ROUTER = "topk"

def params(d, n):
    return {"gate": torch.randn(d["hidden"], d["experts"], requires_grad=True),
            "w1": torch.randn(n, d["hidden"], d["ffn"], requires_grad=True),
            "w2": torch.randn(n, d["ffn"], d["hidden"], requires_grad=True)}

def combine_weights(x, gate, d, ids, slots):
    """(tokens, experts, slots): the weight with which a token's slot of an expert comes back."""
    probs = F.softmax(x @ gate, -1)
    if ROUTER == "topk":
        w, e = probs.topk(2, -1)
        w = w / w.sum(-1, keepdim=True)
        mask = F.one_hot(e, d["experts"]).float()                      # tokens, 2, experts
        flat = mask.transpose(0, 1).reshape(-1, d["experts"])
        pos = (flat.cumsum(0) - 1).view(2, -1, d["experts"]).transpose(0, 1)
        keep = mask * (pos < slots)
        where = F.one_hot((pos * mask).sum(-1).long(), slots).float()  # tokens, 2, slots
        return torch.einsum("tk,tke,tks->tes", w, keep, where)
    mask = F.one_hot(ids, d["experts"]).float()                        # a hash layer: the id is the expert
    pos = (mask.cumsum(0) * mask).sum(-1).long() - 1
    return torch.einsum("t,te,ts->tes", (probs * mask).sum(-1), mask, F.one_hot(pos, slots).float())

def experts(z, w1, w2):
    return torch.bmm(F.gelu(torch.bmm(z, w1)), w2)

class AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        dist.all_to_all_single(y, x.contiguous())
        return y
    @staticmethod
    def backward(ctx, g):
        y = torch.empty_like(g)
        dist.all_to_all_single(y, g.contiguous())
        return y

def train(p, x, ids, layer, d, finish=lambda p, l: l):
    tok = dict(ids=ids) if ROUTER == "hash" else {}
    def step():
        y = layer(x, p, ids)
        loss = (y - x).square().mean()
        loss.backward()
        r = {"loss": finish(p, loss.detach().clone())}
        with torch.no_grad():
            for n, t in p.items():
                r["grad:" + n] = t.grad
                t.sub_(t.grad, alpha=0.1)
                r["new:" + n] = t
        return r
    return dict(state=dict(p, x=x), tokens=tok, step=step)

def logical(d):
    def layer(x, p, ids):
        # each half of the tokens has its own capacity, as each rank has
        out = []
        for h, i in zip(x.chunk(WORLD), ids.chunk(WORLD)):
            c = combine_weights(h, p["gate"], d, i, d["cap"] // WORLD)
            z = torch.einsum("tes,th->esh", (c > 0).to(h.dtype), h)
            out.append(torch.einsum("tes,esh->th", c, experts(z, p["w1"], p["w2"])))
        return torch.cat(out)
    return train(params(d, d["experts"]), torch.randn(d["tokens"], d["hidden"]),
                 torch.randint(0, d["experts"], (d["tokens"],)), layer, d)

def plan(rank, d):
    n = d["experts"] // WORLD
    def layer(x, p, ids):
        c = combine_weights(x, p["gate"], d, ids, d["cap"] // WORLD)
        z = torch.einsum("tes,th->esh", (c > 0).to(x.dtype), x)      # experts, slots, hidden
        z = AllToAll.apply(z)                                        # rank, my experts, slots
        z = z.view(WORLD, n, -1, d["hidden"]).transpose(0, 1).reshape(n, -1, d["hidden"])
        z = experts(z, p["w1"], p["w2"])
        z = z.view(n, WORLD, -1, d["hidden"]).transpose(0, 1).reshape(d["experts"], -1, d["hidden"])
        return torch.einsum("tes,esh->th", c, AllToAll.apply(z))
    def finish(p, loss):
        dist.all_reduce(p["gate"].grad)
        for t in p.values():
            t.grad.div_(WORLD)
        dist.all_reduce(loss)
        return loss / WORLD
    def place(name, full):
        return full if name == "gate" else full.chunk(WORLD)[rank]
    s = train(params(d, n), torch.randn(d["tokens"] // WORLD, d["hidden"]),
              torch.randint(0, d["experts"], (d["tokens"] // WORLD,)), layer, d, finish)
    return dict(s, place=place)
