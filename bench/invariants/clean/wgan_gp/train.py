import os

import torch
import torch.nn as nn
from torch.autograd import grad

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.norm = nn.LayerNorm([8, 4, 4])
        self.out = nn.Linear(128, 1)

    def forward(self, x):
        return self.out(torch.relu(self.norm(self.conv(x))).flatten(1))


class Generator(nn.Module):
    def __init__(self, latent=6):
        super().__init__()
        self.fc = nn.Linear(latent, 64)
        self.up = nn.ConvTranspose2d(4, 1, 4, stride=2, padding=1)

    def forward(self, z):
        return torch.tanh(self.up(torch.relu(self.fc(z)).view(-1, 4, 4, 4)))


def penalty(critic, real, fake):
    mix = torch.rand(len(real), 1, 1, 1)
    x = (mix * real + (1 - mix) * fake).requires_grad_()
    (g,) = grad(critic(x).sum(), x, create_graph=True)
    return ((g.flatten(1).norm(dim=1) - 1) ** 2).mean()


def main():
    torch.manual_seed(SEED)
    g, c = Generator(), Critic()
    opt_g = torch.optim.Adam(g.parameters(), lr=1e-3, betas=(0.0, 0.9))
    opt_c = torch.optim.Adam(c.parameters(), lr=1e-3, betas=(0.0, 0.9))
    steps = 0
    while steps < STEPS:
        real = torch.rand(16, 1, 8, 8).round() * 2 - 1
        fake = g(torch.randn(16, 6)).detach()
        c_loss = c(fake).mean() - c(real).mean() + 10 * penalty(c, real, fake)
        opt_c.zero_grad()
        c_loss.backward()
        opt_c.step()
        steps += 1
        if steps % 3 == 2:
            c.requires_grad_(False)
            g_loss = -c(g(torch.randn(16, 6))).mean()
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
            c.requires_grad_(True)
            steps += 1
            print(steps, c_loss.item(), g_loss.item())


main()
