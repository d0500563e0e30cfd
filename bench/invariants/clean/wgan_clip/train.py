import os

import torch
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
CRITIC_STEPS = 3

torch.manual_seed(SEED)
generator = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.RMSprop(generator.parameters(), lr=5e-4)
opt_c = torch.optim.RMSprop(critic.parameters(), lr=5e-4)


def real_batch(n=32):
    angle = torch.rand(n) * 6.283
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2)


for it in range(max(1, STEPS // (CRITIC_STEPS + 1))):
    for _ in range(CRITIC_STEPS):
        with torch.no_grad():
            fake = generator(torch.randn(32, 4))
        loss_c = critic(fake).mean() - critic(real_batch()).mean()
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()
        with torch.no_grad():
            for p in critic.parameters():
                p.clamp_(-0.05, 0.05)
    loss_g = -critic(generator(torch.randn(32, 4))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    print("iteration", it, "critic", loss_c.item(), "generator", loss_g.item())
