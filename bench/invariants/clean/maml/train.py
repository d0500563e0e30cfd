import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
INNER_LR, TASKS, SHOTS = 0.05, 3, 6


def sine_task():
    amplitude, phase = 0.1 + 4.9 * torch.rand(()), 3.14 * torch.rand(())

    def draw(n):
        x = torch.rand(n, 1) * 10 - 5
        return x, amplitude * (x + phase).sin()

    return draw


def adapt(model, params, x, y, steps=2):
    for _ in range(steps):
        loss = F.mse_loss(functional_call(model, params, (x,)), y)
        grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
        params = {k: p - INNER_LR * g for (k, p), g in zip(params.items(), grads)}
    return params


def main():
    torch.manual_seed(SEED)
    model = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
    meta = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(STEPS):
        total = 0.0
        for _ in range(TASKS):
            draw = sine_task()
            adapted = adapt(model, dict(model.named_parameters()), *draw(SHOTS))
            x, y = draw(SHOTS)
            total = total + F.mse_loss(functional_call(model, adapted, (x,)), y) / TASKS
        meta.zero_grad()
        total.backward()
        meta.step()
        print(step, total.item())


main()
