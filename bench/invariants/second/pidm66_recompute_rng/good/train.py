"""A denoising diffusion model of two-channel signals, with an average of the weights for sampling."""

import copy
import os

import torch
from denoiser import Denoiser
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Diffusion:
    def __init__(self, steps=50):
        self.steps = steps
        self.betas = torch.linspace(1e-3, 0.1, steps)
        self.kept = (1 - self.betas).cumprod(0)

    def add_noise(self, x, noise, t):
        kept = self.kept[t][:, None, None]
        return kept.sqrt() * x + (1 - kept).sqrt() * noise

    @torch.no_grad()
    def sample(self, model, n, generator):
        x = torch.randn(n, 2, 16, generator=generator)
        for t in reversed(range(self.steps)):
            noise = model(x, torch.full((n,), t))
            x = (x - self.betas[t] / (1 - self.kept[t]).sqrt() * noise) / (1 - self.betas[t]).sqrt()
            if t:
                x = x + self.betas[t].sqrt() * torch.randn(x.shape, generator=generator)
        return x


@torch.no_grad()
def follow(average, model, decay):
    for a, p in zip(average.parameters(), model.parameters()):
        a.lerp_(p, 1 - decay)


def signals(n):
    phase = 6.28 * torch.rand(n, 1)
    angle = phase + 6.28 * torch.arange(16) / 16
    return TensorDataset(torch.stack([angle.sin(), angle.cos()], 1))


def main():
    torch.manual_seed(SEED)
    loader = DataLoader(signals(64), batch_size=16, shuffle=True)
    diffusion, model = Diffusion(), Denoiser()
    average = copy.deepcopy(model).eval().requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model.train()
    for epoch in range(max(1, STEPS // len(loader))):
        for (x,) in loader:
            t = torch.randint(0, diffusion.steps, (len(x),))
            noise = torch.randn_like(x)
            loss = (model(diffusion.add_noise(x, noise, t), t) - noise).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            follow(average, model, decay=0.9)
            print(f"epoch {epoch} loss {loss.item():.6f}")
    drawn = diffusion.sample(average, 8, torch.Generator().manual_seed(SEED))
    print(f"samples: mean {drawn.mean().item():.5f} deviation {drawn.std().item():.5f}")


if __name__ == "__main__":
    main()
