"""LoRA training of a small noise-prediction transformer, with accumulation and clipping."""
import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
ACCUMULATE = 2
BATCH = 8
TOKENS, CHANNELS, CLASSES, TIMES = 16, 4, 3, 100
MAX_GRAD_NORM = 0.1


class LoraLinear(nn.Module):
    def __init__(self, base, rank=4, alpha=8):
        super().__init__()
        self.base = base
        self.lora_a = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.lora_a), self.lora_b)


class Block(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.to_q, self.to_k, self.to_v = (nn.Linear(dim, dim) for _ in range(3))
        self.to_out = nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, cond):
        h = self.norm1(x) + cond
        q, k, v = (f(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.to_q, self.to_k, self.to_v))
        x = x + self.to_out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Denoiser(nn.Module):
    def __init__(self, dim=32, layers=2):
        super().__init__()
        self.embed = nn.Linear(CHANNELS, dim)
        self.place = nn.Parameter(0.1 * torch.randn(TOKENS, dim))
        self.time = nn.Sequential(nn.Linear(16, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.label = nn.Embedding(CLASSES, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(layers))
        self.out = nn.Linear(dim, CHANNELS)

    def forward(self, x, t, label):
        freq = torch.exp(-torch.arange(8) * math.log(1000) / 8)
        angle = t[:, None].float() * freq
        cond = (self.time(torch.cat([angle.sin(), angle.cos()], -1)) + self.label(label))[:, None]
        h = self.embed(x) + self.place
        for block in self.blocks:
            h = block(h, cond)
        return self.out(h)


def add_lora(model):
    model.requires_grad_(False)
    for block in model.blocks:
        for name in ("to_q", "to_k", "to_v", "to_out"):
            setattr(block, name, LoraLinear(getattr(block, name)))
    return model


class Diffusion:
    def __init__(self):
        self.alphas = torch.cumprod(1 - torch.linspace(1e-3, 0.05, TIMES), 0)

    def loss(self, model, latents, labels):
        t = torch.randint(TIMES, (len(latents),))
        noise = torch.randn_like(latents)
        a = self.alphas[t][:, None, None]
        noisy = a.sqrt() * latents + (1 - a).sqrt() * noise
        return F.mse_loss(model(noisy, t, labels), noise)


def make_latents(n, seed):
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (n,), generator=g)
    wave = torch.sin(torch.arange(TOKENS)[None, :, None] * (labels[:, None, None] + 1) * 0.4)
    latents = wave * torch.linspace(0.5, 1.5, CHANNELS) + 0.1 * torch.randn(n, TOKENS, CHANNELS, generator=g)
    return TensorDataset(latents, labels)


def main():
    torch.manual_seed(SEED)
    model = add_lora(Denoiser())
    diffusion = Diffusion()
    lora_params = filter(lambda p: p.requires_grad, model.parameters())
    optimizer = torch.optim.SGD(lora_params, lr=0.1, momentum=0.9)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 3))
    data = make_latents(BATCH * ACCUMULATE * STEPS, 1 + SEED)
    loader = DataLoader(data, BATCH, shuffle=True)
    model.train()
    running = 0.0
    optimizer.zero_grad()
    for i, (latents, labels) in enumerate(loader):
        loss = diffusion.loss(model, latents, labels)
        (loss / ACCUMULATE).backward()
        running += loss.item() / ACCUMULATE
        if (i + 1) % ACCUMULATE == 0:
            nn.utils.clip_grad_norm_(lora_params, MAX_GRAD_NORM)
            optimizer.step()
            warmup.step()
            optimizer.zero_grad()
            print(f"step {i // ACCUMULATE} loss {running:.4f} lr {warmup.get_last_lr()[0]:.3f}")
            running = 0.0
    model.eval()
    with torch.no_grad():
        held = make_latents(64, 999)
        print(f"eval loss {diffusion.loss(model, *held.tensors).item():.4f}")
    with tempfile.TemporaryDirectory() as d:
        torch.save({k: v for k, v in model.state_dict().items() if "lora_" in k}, os.path.join(d, "lora.pt"))


if __name__ == "__main__":
    main()
