import os

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Accelerator:
    """The least of one: gradients count as synchronised at the end of each window of micro-batches."""

    def __init__(self, accumulate):
        self.accumulate, self.micro, self.sync_gradients = accumulate, 0, True

    def next(self):
        self.micro += 1
        self.sync_gradients = self.micro % self.accumulate == 0


class Motion(nn.Module):
    def __init__(self, d=12):
        super().__init__()
        self.inp = nn.Linear(6, d)
        self.temporal = nn.MultiheadAttention(d, 3, batch_first=True)
        self.out = nn.Linear(d, 6)

    def forward(self, x):
        h = self.inp(x)
        return self.out(h + self.temporal(h, h, h)[0])


def main():
    torch.manual_seed(SEED)
    unet = Motion()
    optimizer = torch.optim.AdamW(unet.parameters(), lr=3e-3)
    lr_scheduler = LambdaLR(optimizer, lambda s: max(0.0, 1 - s / (STEPS + 1)))
    accelerator, global_step = Accelerator(2), 0
    unet.train()
    while global_step < STEPS:
        accelerator.next()
        video = torch.randn(3, 7, 6).cumsum(1)
        noise = torch.randn_like(video)
        loss = nn.functional.mse_loss(unet(video + noise), noise) / accelerator.accumulate
        loss.backward()
        if accelerator.sync_gradients:
            optimizer.step()
            optimizer.zero_grad()
            global_step += 1
            if not accelerator.sync_gradients:
                lr_scheduler.step()
            print(global_step, loss.item(), "lr", lr_scheduler.get_last_lr()[0])


main()
