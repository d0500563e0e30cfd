import logging
import os

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("train")
SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def unet_block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.InstanceNorm2d(o, affine=True), nn.LeakyReLU(0.1))


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2, self.u1 = unet_block(1, 6), unet_block(6, 12), unet_block(18, 6)
        self.out = nn.Conv2d(6, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(nn.functional.max_pool2d(a, 2))
        b = nn.functional.interpolate(b, scale_factor=2, mode="bilinear", align_corners=False)
        return self.out(self.u1(torch.cat([a, b], 1)))


def dice(logits, y):
    p = logits.sigmoid()
    return 1 - (2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)


def main():
    torch.manual_seed(SEED)
    net = Segmenter()
    opt = torch.optim.AdamW(net.parameters(), lr=5e-3, betas=(0.9, 0.95), amsgrad=True)
    warm = max(1, STEPS // 4)
    sched = SequentialLR(
        opt, [LinearLR(opt, 0.01, 1.0, warm), CosineAnnealingLR(opt, max(1, STEPS - warm), eta_min=1e-5)], [warm]
    )
    for step in range(STEPS):
        y = torch.zeros(4, 1, 16, 16)
        y[:, :, 4:10, 5:12] = 1
        x = y + 0.5 * torch.randn_like(y)
        logits = net(x)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, y) + dice(logits, y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        sched.step()
        log.info("%d loss %.4f lr %.2e", step, loss.item(), sched.get_last_lr()[0])


main()
