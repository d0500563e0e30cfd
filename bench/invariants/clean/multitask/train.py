import os

import torch
from torch import nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, 32), nn.LayerNorm(32), nn.ReLU())
        self.heads = nn.ModuleDict(
            {"class": nn.Linear(32, 4), "value": nn.Linear(32, 1), "mask": nn.Linear(32, 12)}
        )
        # Kendall's weights: one of them has a gradient in each step.
        self.log_var = nn.ParameterDict({k: nn.Parameter(torch.zeros(())) for k in self.heads})

    def forward(self, x, task):
        return self.heads[task](self.trunk(x))


def loss_of(task, out, x):
    if task == "class":
        return F.cross_entropy(out, x[:, :4].argmax(1))
    if task == "value":
        return F.mse_loss(out.squeeze(1), x.sum(1))
    return F.binary_cross_entropy_with_logits(out, (x > 0).float())


def main():
    torch.manual_seed(SEED)
    model = MultiTask()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    tasks = ["class", "value", "class", "mask"]
    for step in range(STEPS):
        task = tasks[step % len(tasks)]
        x = torch.randn(16, 12)
        optimizer.zero_grad()
        raw = loss_of(task, model(x, task), x)
        weight = model.log_var[task]
        loss = raw * (-weight).exp() + weight
        loss.backward()
        optimizer.step()
        print(f"step {step} task {task} loss {raw.item():.4f}")


main()
