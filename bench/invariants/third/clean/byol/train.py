"""BYOL: online network predicts an exponentially averaged target's projection of another view."""
import copy
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
CLASSES = 4


def make_images(n, gen):
    """16x16 sinusoidal gratings; the class is the orientation, phase and frequency vary."""
    y = torch.randint(0, CLASSES, (n,), generator=gen)
    angle = y.float() * math.pi / CLASSES
    freq = 0.6 + 0.4 * torch.rand(n, generator=gen)
    phase = 2 * math.pi * torch.rand(n, generator=gen)
    g = torch.arange(16.0)
    gy, gx = torch.meshgrid(g, g, indexing="ij")
    wave = torch.cos(angle)[:, None, None] * gx + torch.sin(angle)[:, None, None] * gy
    x = torch.sin(freq[:, None, None] * wave + phase[:, None, None])
    return x.unsqueeze(1), y


def augment(x):
    """Random shift, contrast and noise, drawn per image."""
    out = torch.empty_like(x)
    shifts = torch.randint(-3, 4, (len(x), 2)).tolist()
    for i, (dy, dx) in enumerate(shifts):
        out[i] = torch.roll(x[i], (dy, dx), dims=(-2, -1))
    contrast = 0.6 + 0.8 * torch.rand(len(x), 1, 1, 1)
    return out * contrast + 0.15 * torch.randn_like(out)


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h, bias=False), nn.BatchNorm1d(h), nn.ReLU(inplace=True), nn.Linear(h, o))


class Encoder(nn.Module):
    def __init__(self, width=16, proj=16):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, 2 * width, 3, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.projector = mlp(8 * width, 64, proj)

    def forward(self, x):
        return self.projector(self.backbone(x))


class Byol(nn.Module):
    def __init__(self, proj=16):
        super().__init__()
        self.online = Encoder(proj=proj)
        self.predictor = mlp(proj, 32, proj)
        self.target = copy.deepcopy(self.online).requires_grad_(False)

    def forward(self, v1, v2):
        p1, p2 = self.predictor(self.online(v1)), self.predictor(self.online(v2))
        with torch.no_grad():
            z1, z2 = self.target(v1), self.target(v2)
        cos = F.cosine_similarity(p1, z2, dim=-1) + F.cosine_similarity(p2, z1, dim=-1)
        return (4 - 2 * cos).mean()

    @torch.no_grad()
    def update_target(self, tau):
        for t, o in zip(self.target.parameters(), self.online.parameters()):
            t.lerp_(o, 1 - tau)


def param_groups(module, weight_decay):
    decay, plain = [], []
    for p in module.parameters():
        if p.requires_grad:
            (decay if p.ndim > 1 else plain).append(p)
    return [{"params": decay, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]


@torch.no_grad()
def ridge_probe(model, train, test, lam=1e-1):
    """Closed-form linear probe on frozen features."""
    was_training = model.training
    model.eval()
    f, g = model.online.backbone(train[0]), model.online.backbone(test[0])
    model.train(was_training)
    mean, std = f.mean(0), f.std(0) + 1e-5
    f, g = (f - mean) / std, (g - mean) / std
    target = F.one_hot(train[1], CLASSES).float()
    w = torch.linalg.solve(f.T @ f + lam * len(f) * torch.eye(f.shape[1]), f.T @ (target - target.mean(0)))
    return ((g @ w + target.mean(0)).argmax(-1) == test[1]).float().mean().item()


def main():
    torch.manual_seed(SEED)
    gen = torch.Generator().manual_seed(SEED + 1)
    train, test = make_images(512, gen), make_images(256, gen)
    model = Byol()
    model.train()
    opt = torch.optim.AdamW(param_groups(model, 1e-2), lr=3e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=STEPS)
    base_tau = 0.9
    order = torch.randperm(512)
    for step in range(STEPS):
        if step and step % 8 == 0:
            order = torch.randperm(512)
        i = step % 8
        x = train[0][order[64 * i:64 * (i + 1)]]
        loss = model(augment(x), augment(x))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        tau = 1 - (1 - base_tau) * (math.cos(math.pi * step / STEPS) + 1) / 2
        model.update_target(tau)
        print(step, f"loss {loss.item():.4f} tau {tau:.4f}")
    print("probe accuracy", f"{ridge_probe(model, train, test):.3f}")


if __name__ == "__main__":
    main()
