import copy
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
T = 50


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("freq", torch.exp(-math.log(1e4) * torch.arange(dim // 2) / (dim // 2)))
        self.proj = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        a = t[:, None].float() * self.freq
        return self.proj(torch.cat([a.sin(), a.cos()], -1))


class Res(nn.Module):
    def __init__(self, i, o, dim):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(4, i), nn.Conv2d(i, o, 3, padding=1)
        self.t = nn.Linear(dim, o)
        self.n2, self.c2 = nn.GroupNorm(4, o), nn.Conv2d(o, o, 3, padding=1)
        self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()
        self.drop = nn.Dropout(0.1)
        nn.init.zeros_(self.c2.weight)

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.t(t)[:, :, None, None]
        return self.skip(x) + self.c2(self.drop(F.silu(self.n2(h))))


class UNet(nn.Module):
    def __init__(self, ch=8, dim=16):
        super().__init__()
        self.time = TimeEmbedding(dim)
        self.inp = nn.Conv2d(1, ch, 3, padding=1)
        self.down1, self.down2 = Res(ch, ch, dim), Res(ch, 2 * ch, dim)
        self.mid = Res(2 * ch, 2 * ch, dim)
        self.up = Res(3 * ch, ch, dim)
        self.out = nn.Conv2d(ch, 1, 3, padding=1)

    def forward(self, x, t):
        t = self.time(t)
        a = self.down1(self.inp(x), t)
        b = self.mid(self.down2(F.avg_pool2d(a, 2), t), t)
        return self.out(self.up(torch.cat([a, F.interpolate(b, scale_factor=2)], 1), t))


class Ema:
    def __init__(self, model, decay):
        self.model, self.decay = copy.deepcopy(model).eval().requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model):
        for e, p in zip(self.model.parameters(), model.parameters()):
            e.mul_(self.decay).add_(p, alpha=1 - self.decay)


beta = torch.linspace(1e-4, 0.02, T)
alpha_bar = (1 - beta).cumprod(0)


@torch.no_grad()
def sample(model, n):
    x = torch.randn(n, 1, 8, 8)
    for i in reversed(range(0, T, 10)):
        t = torch.full((n,), i)
        eps = model(x, t)
        x = (x - beta[i] / (1 - alpha_bar[i]).sqrt() * eps) / (1 - beta[i]).sqrt()
        if i:
            x = x + beta[i].sqrt() * torch.randn_like(x)
    return x


def main():
    torch.manual_seed(SEED)
    model = UNet()
    ema = Ema(model, 0.95)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model.train()
    for step in range(STEPS):
        x = torch.zeros(8, 1, 8, 8)
        x[:, :, 2:6, 2:6] = torch.rand(8, 1, 1, 1)
        t = torch.randint(0, T, (8,))
        noise = torch.randn_like(x)
        ab = alpha_bar[t][:, None, None, None]
        loss = F.mse_loss(model(ab.sqrt() * x + (1 - ab).sqrt() * noise, t), noise)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        ema.update(model)
        print(step, f"{loss.item():.4f}")
    print("sample mean", f"{sample(ema.model, 2).mean().item():.4f}")


if __name__ == "__main__":
    main()
