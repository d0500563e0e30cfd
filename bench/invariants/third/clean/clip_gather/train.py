"""Two-tower contrastive training on two ranks; features are gathered with gradients, so negatives span the ranks."""
import math
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD, BATCH, WORDS = 2, 16, 14


class Gather(torch.autograd.Function):
    """Concatenate over ranks; the gradient of a rank's rows is the sum of what all ranks send back."""

    @staticmethod
    def forward(ctx, x):
        ctx.rows = x.shape[0]
        parts = [torch.empty_like(x) for _ in range(WORLD)]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, grad):
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        at = dist.get_rank() * ctx.rows
        return grad[at:at + ctx.rows]


def make_pairs(n, gen):
    """A scene has a colour, a place and a size; the picture renders them, the caption names them in random order."""
    colour = torch.randint(0, 4, (n,), generator=gen)
    place = torch.randint(0, 6, (n,), generator=gen)
    size = torch.randint(0, 4, (n,), generator=gen)
    palette = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])
    grid = torch.arange(12.0)
    bump = torch.exp(-((grid - 2 * place[:, None].float()) / (0.6 + 0.5 * size[:, None].float())) ** 2)
    picture = palette[colour][:, :, None] * bump[:, None, :]
    picture = picture + 0.05 * torch.randn(picture.shape, generator=gen)
    caption = torch.stack([colour, 4 + place, 10 + size], 1)
    order = torch.rand(n, 3, generator=gen).argsort(1)
    return picture, caption.gather(1, order)


class TwoTower(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.image = nn.Sequential(nn.Conv1d(3, 16, 3, padding=1), nn.GELU(), nn.Flatten(),
                                   nn.Linear(16 * 12, 64), nn.GELU(), nn.Linear(64, d))
        self.words = nn.Embedding(WORDS, 32)
        self.text = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, d))
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, picture, caption):
        image = F.normalize(self.image(picture), dim=-1)
        text = F.normalize(self.text(self.words(caption).mean(1)), dim=-1)
        return image, text, self.logit_scale.exp()


def clip_loss(image, text, scale):
    """Local rows against the global batch; DDP's mean over ranks makes it the global loss."""
    all_image, all_text = Gather.apply(image), Gather.apply(text)
    labels = dist.get_rank() * len(image) + torch.arange(len(image))
    return (F.cross_entropy(scale * image @ all_text.T, labels) +
            F.cross_entropy(scale * text @ all_image.T, labels)) / 2


@torch.no_grad()
def retrieval(net):
    """Mean rank of the true caption among 64; the same on all ranks, no communication."""
    picture, caption = make_pairs(64, torch.Generator().manual_seed(4000 + SEED))
    net.eval()
    image, text, _ = net(picture, caption)
    net.train()
    sim = image @ text.T
    return (sim > sim.diagonal().unsqueeze(1)).sum(1).float().mean().item()


def worker(rank, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD)
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    net = TwoTower()
    model = DDP(net)
    decay = [p for p in net.parameters() if p.ndim > 1]
    plain = [p for p in net.parameters() if p.ndim <= 1]  # biases and the temperature
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
                            lr=4e-3, betas=(0.9, 0.98))
    gen = torch.Generator().manual_seed(50 * SEED + rank)
    if rank == 0:
        print(f"rank of the true caption before {retrieval(net):.2f}", flush=True)
    for step in range(STEPS):
        picture, caption = make_pairs(BATCH, gen)
        loss = clip_loss(*model(picture, caption))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        with torch.no_grad():
            net.logit_scale.clamp_(0.0, math.log(100.0))
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"{step} loss {mean.item() / WORLD:.4f} scale {net.logit_scale.exp().item():.3f}", flush=True)
    if rank == 0:
        print(f"after {retrieval(net):.2f}", flush=True)
    dist.destroy_process_group()


def main():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(port,), nprocs=WORLD)


if __name__ == "__main__":
    main()
