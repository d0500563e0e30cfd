import os

import torch
from resnet1d import ResMlp

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def main():
    torch.manual_seed(SEED)
    model = ResMlp(8, depth=3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for step in range(STEPS):
        x = torch.randn(24, 8)
        loss = torch.nn.functional.mse_loss(model(x), torch.sin(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, "loss", loss.item())


main()
