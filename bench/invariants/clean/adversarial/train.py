import os

import torch
import torch.nn.functional as F
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def pgd(model, x, y, eps=0.1, alpha=0.04, iters=3):
    model.eval()
    delta = torch.empty_like(x).uniform_(-eps, eps).requires_grad_()
    for _ in range(iters):
        loss = F.cross_entropy(model(x + delta), y)
        (g,) = torch.autograd.grad(loss, delta)
        delta = (delta + alpha * g.sign()).clamp(-eps, eps).detach().requires_grad_()
    model.train()
    return (x + delta).detach()


def main():
    torch.manual_seed(SEED)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 4)
    )
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model.train()
    for step in range(STEPS):
        y = torch.randint(0, 4, (16,))
        x = torch.rand(16, 1, 8, 8) + 0.2 * y[:, None, None, None]
        bad = pgd(model, x, y)
        loss = 0.5 * F.cross_entropy(model(x), y) + 0.5 * F.cross_entropy(model(bad), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item())


main()
