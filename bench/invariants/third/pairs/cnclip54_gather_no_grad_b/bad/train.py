"""Contrastive image-text pretraining on two ranks with a global batch of negatives."""
import os
import socket
import tempfile

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
WORLD = 2
BATCH = 16
COLORS, SHAPES, PLACES = 3, 3, 4
VOCAB = COLORS + SHAPES + PLACES + 1


class Captions(torch.utils.data.Dataset):
    """A coloured shape in one quadrant of the image, with a caption of four tokens."""

    def __init__(self, length, seed):
        self.length, self.seed = length, seed

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        color = int(torch.randint(COLORS, (1,), generator=g))
        shape = int(torch.randint(SHAPES, (1,), generator=g))
        place = int(torch.randint(PLACES, (1,), generator=g))
        image = 0.1 * torch.randn(3, 16, 16, generator=g)
        top, left = 8 * (place // 2), 8 * (place % 2)
        patch = torch.zeros(8, 8)
        if shape == 0:
            patch[2:6, 2:6] = 1
        elif shape == 1:
            patch[3:5, :] = 1
        else:
            patch[:, 3:5] = 1
        image[color, top:top + 8, left:left + 8] += patch
        tokens = [VOCAB - 1, color, COLORS + shape, COLORS + SHAPES + place]
        return image, torch.tensor(tokens)


class ImageTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.proj = nn.Linear(32 * 16, dim, bias=False)

    def forward(self, x):
        x = F.gelu(self.conv2(F.gelu(self.conv1(x))))
        return self.proj(x.flatten(1))


class TextTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 32)
        self.rnn = nn.GRU(32, 32, batch_first=True)
        self.proj = nn.Linear(32, dim, bias=False)

    def forward(self, tokens):
        _, h = self.rnn(self.embed(tokens))
        return self.proj(h[-1])


class Clip(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.visual = ImageTower(dim)
        self.text = TextTower(dim)
        self.logit_scale = nn.Parameter(torch.tensor(np.log(1 / 0.07), dtype=torch.float32))

    def forward(self, images, tokens):
        image = F.normalize(self.visual(images), dim=-1)
        text = F.normalize(self.text(tokens), dim=-1)
        return image, text, self.logit_scale.exp()


def gather_features(features):
    gathered = [torch.zeros_like(features) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, features.detach().contiguous())
    return torch.cat(gathered)


class ClipLoss(nn.Module):
    def forward(self, image, text, scale):
        image, text = gather_features(image), gather_features(text)
        logits = scale * image @ text.t()
        labels = torch.arange(len(logits))
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


def average_gradients(model):
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()


@torch.no_grad()
def retrieval(model, data):
    model.eval()
    images, tokens = torch.utils.data.default_collate([data[i] for i in range(64)])
    image, text, scale = model(images, tokens)
    best = (image @ text.t()).argmax(1)
    model.train()
    return float((tokens[best] == tokens).all(1).float().mean())


def main(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(SEED)
    model, criterion = Clip(), ClipLoss()
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    opt = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0, "lr": 3e-2}], lr=5e-3)
    train = Captions(BATCH * WORLD * STEPS, 1 + SEED)
    sampler = torch.utils.data.DistributedSampler(train, WORLD, rank, shuffle=True, seed=SEED)
    loader = torch.utils.data.DataLoader(train, BATCH, sampler=sampler, drop_last=True)
    model.train()
    for step, (images, tokens) in enumerate(loader):
        opt.zero_grad()
        loss = criterion(*model(images, tokens))
        loss.backward()
        average_gradients(model)
        opt.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, np.log(100))
        if rank == 0:
            print(f"step {step} loss {loss.item():.4f} scale {model.logit_scale.exp().item():.2f}")
    if rank == 0:
        print(f"retrieval@1 {retrieval(model, Captions(64, 9999)):.3f}")
        with tempfile.TemporaryDirectory() as d:
            torch.save({"model": model.state_dict(), "opt": opt.state_dict()}, d + "/clip.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free = s.getsockname()[1]
    mp.start_processes(main, args=(free,), nprocs=WORLD, start_method="fork")
