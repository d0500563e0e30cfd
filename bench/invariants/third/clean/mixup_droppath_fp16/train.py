"""MLP-mixer with stochastic depth, mixup with smoothed targets, fp16 autocast, loss scaling and averaged weights."""
import math
import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
CLASSES, SIZE, PATCH = 5, 12, 3


def make_data(n, gen):
    """Each class is a position of a bright cross on a noisy ground, jittered by a pixel."""
    centers = torch.tensor([[2, 2], [2, 9], [9, 2], [9, 9], [5, 5]])
    y = torch.randint(0, CLASSES, (n,), generator=gen)
    c = centers[y] + torch.randint(-1, 2, (n, 2), generator=gen)
    g = torch.arange(SIZE)
    row = (g[None, :] - c[:, :1]).abs()
    col = (g[None, :] - c[:, 1:]).abs()
    cross = ((row[:, :, None] + col[:, None, :]) <= 2).float()
    return (cross + 0.5 * torch.randn(n, SIZE, SIZE, generator=gen)).unsqueeze(1), y


class DropPath(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        if not self.training or self.rate == 0.0:
            return x
        keep = 1.0 - self.rate
        mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
        return x * mask / keep


class MixerBlock(nn.Module):
    def __init__(self, tokens, dim, drop):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.token = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
        self.channel = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.drop = DropPath(drop)

    def forward(self, x):
        x = x + self.drop(self.token(self.ln1(x).transpose(1, 2)).transpose(1, 2))
        return x + self.drop(self.channel(self.ln2(x)))


class Mixer(nn.Module):
    def __init__(self, dim=32, depth=4, drop=0.2):
        super().__init__()
        self.embed = nn.Linear(PATCH * PATCH, dim)
        rates = np.linspace(0, drop, depth).tolist()  # deeper blocks are dropped more often
        self.blocks = nn.Sequential(*(MixerBlock((SIZE // PATCH) ** 2, dim, r) for r in rates))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, CLASSES)

    def forward(self, x):
        x = F.unfold(x, PATCH, stride=PATCH).transpose(1, 2)
        return self.head(self.norm(self.blocks(self.embed(x))).mean(1))


def mixup(x, y, rng, alpha=0.3, smoothing=0.1):
    lam = float(rng.beta(alpha, alpha))
    perm = torch.randperm(len(x))
    target = F.one_hot(y, CLASSES).float() * (1 - smoothing) + smoothing / CLASSES
    return lam * x + (1 - lam) * x[perm], lam * target + (1 - lam) * target[perm]


def groups(model, weight_decay):
    decay = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": decay, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(x)
    acc = (logits.argmax(-1) == y).float().mean().item()
    return F.cross_entropy(logits.float(), y).item(), acc


def main():
    torch.manual_seed(SEED)
    rng, gen = np.random.default_rng(SEED), torch.Generator().manual_seed(SEED)
    (x, y), (vx, vy) = make_data(512, gen), make_data(128, gen)
    model = Mixer()
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.8))
    opt = torch.optim.AdamW(groups(model, 0.05), lr=4e-3)
    warm = max(1, STEPS // 5)

    def lr_at(s):
        if s < warm:
            return (s + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * (s - warm) / max(1, STEPS - warm)))

    sched = torch.optim.lr_scheduler.LambdaLR(opt, lr_at)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 12, growth_interval=100)
    for step in range(STEPS):
        model.train()
        idx = torch.randint(0, len(x), (64,))
        xb, target = mixup(x[idx], y[idx], rng)
        opt.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.float16):
            logits = model(xb)
        loss = F.cross_entropy(logits.float(), target)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        before = scaler.get_scale()
        scaler.step(opt)
        scaler.update()
        if scaler.get_scale() >= before:  # the optimizer was not skipped
            sched.step()
            ema.update_parameters(model)
        print(step, f"loss {loss.item():.4f} norm {norm.item():.3f} scale {scaler.get_scale():.0f}")
        if (step + 1) % 4 == 0:
            raw, avg = evaluate(model, vx, vy), evaluate(ema, vx, vy)
            print(f"  raw {raw[0]:.4f} {raw[1]:.3f} ema {avg[0]:.4f} {avg[1]:.3f}")


if __name__ == "__main__":
    main()
