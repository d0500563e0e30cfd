"""Super-resolution by a generator and a discriminator that are trained in turn."""

import os

import torch
from networks import Discriminator, Generator, blur_down
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Pictures(Dataset):
    """Bars and discs on a grey ground."""

    def __init__(self, n, size=16):
        y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        self.large = []
        for i in range(n):
            cx, cy, r = (torch.rand(3) * torch.tensor([size, size, 4.0]) + torch.tensor([0.0, 0.0, 2.0])).tolist()
            shape = (x - cx) ** 2 + (y - cy) ** 2 < r**2 if i % 2 else (x - cx).abs() < r / 2
            self.large.append((shape.float() + 0.1 * torch.randn(size, size))[None])

    def __len__(self):
        return len(self.large)

    def __getitem__(self, i):
        return {"lr": blur_down(self.large[i]), "hr": self.large[i]}


def define_optimizer(discriminator, generator):
    d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.9, 0.999))
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.9, 0.999))
    return d_optimizer, g_optimizer


def train_epoch(discriminator, generator, loader, d_optimizer, g_optimizer):
    pixel_criterion, adversarial_criterion = nn.MSELoss(), nn.BCEWithLogitsLoss()
    discriminator.train()
    generator.train()
    for batch in loader:
        hr = batch["hr"]
        real, fake = torch.ones(len(hr), 1), torch.zeros(len(hr), 1)

        discriminator.requires_grad_(True)
        d_optimizer.zero_grad()
        d_loss_hr = adversarial_criterion(discriminator(hr), real)
        d_loss_sr = adversarial_criterion(discriminator(generator(batch["lr"]).detach()), fake)
        d_loss = d_loss_hr + d_loss_sr
        d_loss.backward()
        g_optimizer.step()

        discriminator.requires_grad_(False)
        g_optimizer.zero_grad()
        sr = generator(batch["lr"])
        pixel_loss = pixel_criterion(sr, hr)
        g_loss = pixel_loss + 1e-2 * adversarial_criterion(discriminator(sr), real)
        g_loss.backward()
        g_optimizer.step()
        print(f"d loss {d_loss.item():.6f} g loss {g_loss.item():.6f} pixel {pixel_loss.item():.6f}")


def main():
    torch.manual_seed(SEED)
    loader = DataLoader(Pictures(32), batch_size=16, shuffle=True, drop_last=True)
    discriminator, generator = Discriminator(), Generator()
    epochs = max(1, STEPS // (2 * len(loader)))
    d_optimizer, g_optimizer = define_optimizer(discriminator, generator)
    for epoch in range(epochs):
        print("epoch", epoch)
        train_epoch(discriminator, generator, loader, d_optimizer, g_optimizer)


if __name__ == "__main__":
    main()
