import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Bottleneck(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.down, self.up = nn.Linear(d, d // 4), nn.Linear(d // 4, d)

    def forward(self, x):
        return x + self.up(torch.relu(self.down(x)))


class Learner:
    def __init__(self, model, lr, bound):
        self.model, self.bound = model, bound
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    def fit_one_batch(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.smooth_l1_loss(self.model(x), y)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.bound)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(SEED)
    learner = Learner(nn.Sequential(Bottleneck(16), Bottleneck(16), nn.Linear(16, 1)), 0.05, 0.1)
    learner.model.train()
    for step in range(STEPS):
        x = torch.randn(20, 16)
        print(step, learner.fit_one_batch(x, 10 * x.mean(1, keepdim=True)))


main()
