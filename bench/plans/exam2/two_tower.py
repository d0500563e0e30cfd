"""Two towers (images by convolution, texts by a mean of embeddings) with a contrastive loss over the whole batch: features
gathered over the ranks, labels by place, a learned temperature; data parallel by hand with one bucket."""
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

WORLD = 2
DIMS = dict(batch=4, words=3, vocab=5, size=4, width=3)
LR = 0.05


class ImageTower(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 2, stride=2)
        self.norm = nn.GroupNorm(2, 4)
        self.proj = nn.Linear(4, d["width"], bias=False)

    def forward(self, x):
        x = F.silu(self.norm(self.conv(x)))
        return self.proj(x.mean((2, 3)))


class TextTower(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.emb = nn.Embedding(d["vocab"], d["width"])
        self.fc = nn.Linear(d["width"], d["width"])

    def forward(self, ids, mask):
        x = self.fc(self.emb(ids)).tanh()
        mask = mask[..., None]
        return (x * mask).sum(1) / mask.sum(1)


class AllGather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(WORLD)]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, g):
        out = torch.empty(g.shape[0] // WORLD, *g.shape[1:], dtype=g.dtype)
        dist.reduce_scatter(out, [t.contiguous() for t in g.chunk(WORLD)])
        return out


def unit(x):
    return x / (x.square().sum(-1, keepdim=True) + 1e-4).sqrt()


def build(d, parts, rank):
    net = nn.ModuleDict(dict(image=ImageTower(d), text=TextTower(d)))
    params = dict(net.named_parameters())
    params["log_scale"] = torch.zeros((1,), requires_grad=True)
    rows = d["batch"] // parts
    images = torch.randn(rows, 2, d["size"], d["size"])
    ids = torch.zeros(rows, d["words"], dtype=torch.long)
    mask = torch.rand(rows, d["words"])

    def step():
        image, text = unit(net["image"](images)), unit(net["text"](ids, mask))
        all_image, all_text = (AllGather.apply(image), AllGather.apply(text)) if parts > 1 else (image, text)
        scale = params["log_scale"].exp()
        labels = torch.arange(rows) + rank * rows
        loss = (F.cross_entropy(scale * image @ all_text.t(), labels)
                + F.cross_entropy(scale * text @ all_image.t(), labels)) / 2
        loss.backward()
        loss = loss.detach().clone()
        if parts > 1:
            dist.all_reduce(loss)
            loss /= parts
            bucket = torch.cat([p.grad.flatten() for p in params.values()])
            dist.all_reduce(bucket)
            bucket /= parts
            at = 0
            for p in params.values():
                p.grad.copy_(bucket[at:at + p.numel()].view_as(p))
                at += p.numel()
        with torch.no_grad():
            for p in params.values():
                p.add_(p.grad, alpha=-LR)
        return {"loss": loss, **{"grad:" + n: p.grad for n, p in params.items()},
                **{"new:" + n: p for n, p in params.items()}}
    return dict(state={**params, "images": images, "pos_mask": mask}, tokens={"ids": ids}, step=step)


def logical(d):
    return build(d, 1, 0)


def plan(rank, d):
    def place(name, full):
        return full.chunk(WORLD, 0)[rank] if name in ("images", "ids", "pos_mask") else full
    return dict(build(d, WORLD, rank), place=place)
