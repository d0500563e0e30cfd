"""Semi-supervised: the teacher is the student's average, and stays in training mode as in the paper's code."""
import os

import torch
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def create_model(ema=False):
    model = nn.Sequential(nn.Linear(9, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Dropout(0.2), nn.Linear(30, 3))
    if ema:
        for param in model.parameters():
            param.detach_()
    return model


def update_ema_variables(model, ema_model, alpha, global_step):
    alpha = min(1 - 1 / (global_step + 1), alpha)
    for ema_param, param in zip(ema_model.parameters(), model.parameters()):
        ema_param.data.mul_(alpha).add_(param.data, alpha=1 - alpha)


def main():
    torch.manual_seed(SEED)
    model, ema_model = create_model(), create_model(ema=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4, nesterov=True)
    for step in range(STEPS):
        model.train()
        ema_model.train()
        y = torch.randint(0, 3, (16,))
        clean = torch.randn(16, 9) + y[:, None]
        labelled = torch.arange(16) < 6
        a, b = clean + 0.1 * torch.randn_like(clean), clean + 0.1 * torch.randn_like(clean)
        ema_logit = ema_model(b).detach()
        logit = model(a)
        class_loss = nn.functional.cross_entropy(logit[labelled], y[labelled])
        consistency = nn.functional.mse_loss(logit.softmax(1), ema_logit.softmax(1))
        loss = class_loss + 10 * min(1.0, step / 4) * consistency
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update_ema_variables(model, ema_model, 0.99, step)
        print(step, class_loss.item(), consistency.item())
    model.eval()
    with torch.no_grad():
        print("accuracy", (model(clean).argmax(1) == y).float().mean().item())


main()
