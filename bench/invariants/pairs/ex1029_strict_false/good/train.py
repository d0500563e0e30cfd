import io
import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU())

    def forward(self, x):
        return self.conv(x).flatten(1)


class Lightning(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Encoder()
        self.decoder = nn.Linear(8 * 9, 121)

    def forward(self, x):
        return self.decoder(self.model(x)).view_as(x)


def images(n):
    at = torch.randint(2, 9, (n, 2))
    grid = torch.arange(11)
    d = (grid[None, :, None] - at[:, :1, None]) ** 2 + (grid[None, None] - at[:, 1:, None]) ** 2
    return torch.exp(-d / 4.0).unsqueeze(1), (at[:, 0] > 5).long()


def pretrain(steps):
    net = Lightning()
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    net.train()
    for _ in range(steps):
        x, _ = images(16)
        loss = nn.functional.mse_loss(net(x), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
    file = io.BytesIO()
    torch.save({"state_dict": net.state_dict()}, file)
    file.seek(0)
    return file


def main():
    torch.manual_seed(SEED)
    file = pretrain(max(1, STEPS // 2))
    encoder = Encoder()
    weights = torch.load(file)["state_dict"]
    weights = {k.removeprefix("model."): v for k, v in weights.items()}
    encoder.load_state_dict(weights, strict=False)
    classifier = nn.Sequential(encoder, nn.Linear(72, 2))
    opt = torch.optim.Adam(classifier.parameters(), lr=3e-3)
    classifier.train()
    for step in range(STEPS):
        x, y = images(16)
        loss = nn.functional.cross_entropy(classifier(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item())


main()
