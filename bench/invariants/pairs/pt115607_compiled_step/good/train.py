import os

import torch
from fused import FusedSgd
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def main():
    torch.manual_seed(SEED)
    model = nn.Sequential(nn.Linear(14, 28), nn.Sigmoid(), nn.Linear(28, 2))
    opt = FusedSgd(model.parameters(), lr=0.2)
    opt.step()  # warm up: nothing has a gradient yet
    for step in range(STEPS):
        x = torch.randn(16, 14)
        loss = nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item())


main()
