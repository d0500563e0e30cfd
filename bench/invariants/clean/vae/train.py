import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Vae(nn.Module):
    def __init__(self, d=64, h=32, z=4):
        super().__init__()
        self.enc = nn.Linear(d, h)
        self.mu = nn.Linear(h, z)
        self.log_var = nn.Linear(h, z)
        self.dec1 = nn.Linear(z, h)
        self.dec2 = nn.Linear(h, d)

    def encode(self, x):
        h = F.relu(self.enc(x))
        return self.mu(h), self.log_var(h)

    def reparameterize(self, mu, log_var):
        return mu + torch.randn_like(mu) * (0.5 * log_var).exp()

    def decode(self, z):
        return torch.sigmoid(self.dec2(F.relu(self.dec1(z))))

    def forward(self, x):
        mu, log_var = self.encode(x)
        return self.decode(self.reparameterize(mu, log_var)), mu, log_var


def loss_function(recon, x, mu, log_var):
    bce = F.binary_cross_entropy(recon, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + log_var - mu.pow(2) - log_var.exp())
    return bce + kld


def main():
    torch.manual_seed(SEED)
    data = (torch.rand(128, 64) > 0.7).float()
    loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)
    model = Vae()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(max(1, STEPS // len(loader))):
        model.train()
        total = 0.0
        for x in loader:
            optimizer.zero_grad()
            loss = loss_function(*[(out := model(x))[0], x, *out[1:]])
            loss.backward()
            total += loss.item()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            recon, mu, log_var = model(data[:32])
            print(epoch, total / len(data), loss_function(recon, data[:32], mu, log_var).item())
            model.decode(torch.randn(4, 4))


if __name__ == "__main__":
    main()
