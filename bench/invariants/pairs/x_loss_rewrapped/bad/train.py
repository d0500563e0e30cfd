import os

import torch
import torch.nn as nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class DeepSupervision(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 6, 3, padding=1)
        self.mid = nn.Conv2d(6, 6, 3, padding=1)
        self.aux = nn.Conv2d(6, 1, 1)
        self.head = nn.Conv2d(6, 1, 1)

    def forward(self, x):
        a = torch.relu(self.stem(x))
        b = torch.relu(self.mid(a))
        return self.head(b), self.aux(a)


class Criterion:
    def __init__(self, weights=(1.0, 0.4)):
        self.weights = torch.tensor(weights)

    def __call__(self, outputs, target):
        main, aux = (nn.functional.binary_cross_entropy_with_logits(o, target) for o in outputs)
        extra = torch.tensor([main.item(), aux.item()]) * self.weights
        return main + extra[1:].sum()


def main():
    torch.manual_seed(SEED)
    net, criterion = DeepSupervision(), Criterion()
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net.train()
    for step in range(STEPS):
        target = (torch.rand(4, 1, 10, 10) > 0.8).float()
        loss = criterion(net(target + 0.5 * torch.randn_like(target)), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item())


main()
