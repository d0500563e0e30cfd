"""Unpaired translation between two image domains: two generators, two discriminators, image pools."""
import itertools
import math
import os
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
SIZE = 16


def blobs(n, gen, dark):
    """Domain A: one bright blob on a dark ground; domain B: one dark ring on a bright ground."""
    g = torch.linspace(-1, 1, SIZE)
    gy, gx = torch.meshgrid(g, g, indexing="ij")
    c = torch.rand(n, 2, 1, 1, generator=gen) - 0.5
    r = ((gx - c[:, 0]) ** 2 + (gy - c[:, 1]) ** 2).sqrt()
    if dark:
        img = 1 - 2 * torch.exp(-40 * (r - 0.4) ** 2)
    else:
        img = -1 + 2 * torch.exp(-8 * r ** 2)
    return img.unsqueeze(1)


class ImagePool:
    """History of generated images, so the discriminators do not forget older fakes."""

    def __init__(self, size, rng):
        self.size, self.rng, self.images = size, rng, []

    def query(self, batch):
        out = []
        for img in batch.detach():
            if len(self.images) < self.size:
                self.images.append(img.clone())
                out.append(img)
            elif self.rng.random() < 0.5:
                k = self.rng.randrange(self.size)
                out.append(self.images[k])
                self.images[k] = img.clone()
            else:
                out.append(img)
        return torch.stack(out)


def conv_block(i, o, stride=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1), nn.InstanceNorm2d(o), nn.ReLU(inplace=True))


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(conv_block(c, c), nn.Conv2d(c, c, 3, 1, 1), nn.InstanceNorm2d(c))

    def forward(self, x):
        return x + self.body(x)


def generator(w=8):
    return nn.Sequential(conv_block(1, w), conv_block(w, 2 * w, 2), Residual(2 * w),
                         nn.Upsample(scale_factor=2), conv_block(2 * w, w), nn.Conv2d(w, 1, 3, 1, 1), nn.Tanh())


def discriminator(w=8):
    return nn.Sequential(nn.Conv2d(1, w, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(w, 2 * w, 4, 2, 1),
                         nn.InstanceNorm2d(2 * w), nn.LeakyReLU(0.2, True), nn.Conv2d(2 * w, 1, 3, 1, 1))


def init_weights(m):
    if isinstance(m, nn.Conv2d):
        nn.init.normal_(m.weight, 0.0, 0.05)
        nn.init.zeros_(m.bias)


def set_requires_grad(nets, flag):
    for net in nets:
        net.requires_grad_(flag)


def gan_loss(pred, real):
    return F.mse_loss(pred, torch.full_like(pred, 1.0 if real else 0.0))


def main():
    torch.manual_seed(SEED)
    rng, gen = random.Random(SEED), torch.Generator().manual_seed(SEED)
    data_a, data_b = blobs(128, gen, dark=False), blobs(128, gen, dark=True)
    g_ab, g_ba, d_a, d_b = generator(), generator(), discriminator(), discriminator()
    for net in (g_ab, g_ba, d_a, d_b):
        net.apply(init_weights)
    opt_g = torch.optim.Adam(itertools.chain(g_ab.parameters(), g_ba.parameters()), lr=2e-3, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(itertools.chain(d_a.parameters(), d_b.parameters()), lr=1e-3, betas=(0.5, 0.999))
    half = math.ceil(STEPS / 2)
    decay = lambda s: 1.0 - max(0, s - half) / (STEPS - half + 1)  # flat, then linear to near zero
    schedulers = [torch.optim.lr_scheduler.LambdaLR(o, decay) for o in (opt_g, opt_d)]
    pool_a, pool_b = ImagePool(24, rng), ImagePool(24, rng)

    for step in range(STEPS):
        real_a = data_a[torch.randint(0, 128, (8,))]
        real_b = data_b[torch.randint(0, 128, (8,))]

        set_requires_grad((d_a, d_b), False)
        fake_b, fake_a = g_ab(real_a), g_ba(real_b)
        adv = gan_loss(d_b(fake_b), True) + gan_loss(d_a(fake_a), True)
        cycle = F.l1_loss(g_ba(fake_b), real_a) + F.l1_loss(g_ab(fake_a), real_b)
        identity = F.l1_loss(g_ab(real_b), real_b) + F.l1_loss(g_ba(real_a), real_a)
        loss_g = adv + 10.0 * cycle + 5.0 * identity
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()

        set_requires_grad((d_a, d_b), True)
        opt_d.zero_grad()
        loss_d = 0.0
        for net, real, fake in ((d_a, real_a, pool_a.query(fake_a)), (d_b, real_b, pool_b.query(fake_b))):
            part = 0.5 * (gan_loss(net(real), True) + gan_loss(net(fake), False))
            part.backward()
            loss_d += part.item()
        opt_d.step()
        for s in schedulers:
            s.step()
        print(step, f"g {loss_g.item():.4f} cycle {cycle.item():.4f} d {loss_d:.4f} lr {schedulers[0].get_last_lr()[0]:.5f}")


if __name__ == "__main__":
    main()
