import os
import tempfile

import torch
from checkpointing import AsyncCheckpointer
from torch import nn

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def main(folder):
    torch.manual_seed(SEED)
    model = nn.Sequential(nn.Linear(7, 21), nn.Mish(), nn.LayerNorm(21), nn.Linear(21, 7))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    checkpointer = AsyncCheckpointer(model, folder)
    for step in range(1, STEPS + 1):
        x = torch.randn(12, 7)
        loss = nn.functional.l1_loss(model(x), x.flip(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())
        if step % 2 == 0:
            checkpointer.save(step)
    checkpointer.wait()
    print(sorted(os.listdir(folder)))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
