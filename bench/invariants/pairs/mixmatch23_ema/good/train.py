import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(10, 24), nn.LeakyReLU(0.1), nn.Linear(24, 24), nn.LeakyReLU(0.1))
        self.classifier = nn.Linear(24, 5)

    def forward(self, x):
        return self.classifier(self.features(x))


class WeightEMA:
    def __init__(self, model, ema_model, alpha=0.9):
        self.model, self.ema_model, self.alpha = model, ema_model, alpha
        for param, ema_param in zip(model.parameters(), ema_model.parameters()):
            ema_param.data.copy_(param.data)

    def step(self):
        for param, ema_param in zip(self.model.parameters(), self.ema_model.parameters()):
            ema_param.data.mul_(self.alpha).add_(param.data, alpha=1 - self.alpha)


def create_model(ema=False):
    model = Net()
    if ema:
        for param in model.parameters():
            param.detach_()
    return model


def sharpen(p, t=0.5):
    p = p ** (1 / t)
    return p / p.sum(1, keepdim=True)


def main():
    torch.manual_seed(SEED)
    model, ema_model = create_model(), create_model(ema=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    ema_optimizer = WeightEMA(model, ema_model)
    model.train()
    for step in range(STEPS):
        y = torch.randint(0, 5, (12,))
        x = torch.randn(12, 10) + y[:, None]
        u = torch.randn(12, 10) + torch.randint(0, 5, (12, 1))
        with torch.no_grad():
            guess = sharpen(ema_model(u).softmax(1))
        lx = nn.functional.cross_entropy(model(x), y)
        lu = (model(u + 0.1 * torch.randn_like(u)).softmax(1) - guess).pow(2).mean()
        loss = lx + 5 * lu
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema_optimizer.step()
        print(step, lx.item(), lu.item())


main()
