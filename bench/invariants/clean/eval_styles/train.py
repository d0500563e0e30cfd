"""Evaluations as they are met: before training, with and without no_grad, several in a row, one that stays in train mode."""
import os

import torch
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def accuracy(model, x, y):
    was = model.training
    model.eval()
    out = model(x).argmax(1).eq(y).float().mean().item()  # small: nobody minds the graph
    model.train(was)
    return out


@torch.inference_mode()
def loss_on(model, x, y):
    model.eval()
    out = nn.functional.cross_entropy(model(x), y).item()
    model.train()
    return out


def uncertainty(model, x, times=5):
    """Monte Carlo dropout: in train mode, on purpose."""
    with torch.no_grad():
        p = torch.stack([model(x).softmax(-1) for _ in range(times)])
    return p.var(0).mean().item()


def main():
    torch.manual_seed(SEED)
    x = torch.randn(120, 10)
    y = (x[:, 0] * x[:, 1] > 0).long()
    valid, test = (x[80:100], y[80:100]), (x[100:], y[100:])
    model = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Dropout(0.25), nn.Linear(40, 2))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    print("before", loss_on(model, *valid), accuracy(model, *test))
    for step in range(STEPS):
        ids = torch.randint(0, 80, (16,))
        loss = nn.functional.cross_entropy(model(x[ids]), y[ids])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 2 == 1:
            print(step, loss_on(model, *valid), loss_on(model, *test), accuracy(model, *valid))
    print("uncertainty", uncertainty(model, x[80:]))


main()
