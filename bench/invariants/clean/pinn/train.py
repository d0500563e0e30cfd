"""u'' = -u with u(0) = 0, u'(0) = 1: derivatives by autograd inside the loss; Adam, then L-BFGS."""
import os

import torch
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def d(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def loss_fn(u, x):
    y = u(x)
    residual = d(d(y, x), x) + y
    zero = torch.zeros(1, 1, requires_grad=True)
    at = u(zero)
    return residual.square().mean() + at.square().sum() + (d(at, zero) - 1).square().sum()


torch.manual_seed(SEED)
u = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
x = torch.linspace(0, 3, 20).unsqueeze(1).requires_grad_()
adam = torch.optim.Adam(u.parameters(), lr=1e-2)
for step in range(STEPS - 2):
    adam.zero_grad()
    loss = loss_fn(u, x)
    loss.backward()
    adam.step()
    print(step, loss.item())

fine = torch.optim.LBFGS(u.parameters(), max_iter=5, line_search_fn="strong_wolfe")


def closure():
    fine.zero_grad()
    loss = loss_fn(u, x)
    loss.backward()
    return loss


for step in range(2):
    print("fine", fine.step(closure).item())
