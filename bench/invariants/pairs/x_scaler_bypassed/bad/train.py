import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Autoencoder(nn.Module):
    def __init__(self, d=20, z=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(d, 16), nn.ReLU(), nn.Linear(16, z))
        self.decoder = nn.Sequential(nn.Linear(z, 16), nn.ReLU(), nn.Linear(16, d))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class AmpOptimizer:
    def __init__(self, optimizer, enabled=True):
        self.optimizer = optimizer
        self.scaler = torch.amp.GradScaler("cpu", enabled=enabled, init_scale=256.0)

    def minimize(self, loss):
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.optimizer.step()


def main():
    torch.manual_seed(SEED)
    net = Autoencoder()
    amp = AmpOptimizer(torch.optim.Adam(net.parameters(), lr=2e-3))
    net.train()
    basis = torch.randn(3, 20)
    for step in range(STEPS):
        x = torch.randn(16, 3) @ basis
        with torch.autocast("cpu", torch.bfloat16):
            out = net(x)
        loss = nn.functional.mse_loss(out.float(), x)
        amp.minimize(loss)
        print(step, loss.item())


main()
