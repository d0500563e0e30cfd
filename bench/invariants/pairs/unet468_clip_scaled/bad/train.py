import logging
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class DoubleConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
            nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc, self.down, self.up = DoubleConv(1, 6), DoubleConv(6, 12), DoubleConv(18, 6)
        self.outc = nn.Conv2d(6, 1, 1)

    def forward(self, x):
        a = self.inc(x)
        b = F.interpolate(self.down(F.max_pool2d(a, 2)), scale_factor=2)
        return self.outc(self.up(torch.cat([a, b], 1)))


def train_model(model, loader, epochs, amp=True, gradient_clipping=1.0):
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, weight_decay=1e-8, momentum=0.9)
    grad_scaler = torch.amp.GradScaler("cpu", enabled=amp, init_scale=2.0**12)
    for epoch in range(1, epochs + 1):
        model.train()
        for images, true_masks in loader:
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=amp):
                masks_pred = model(images)
            loss = F.binary_cross_entropy_with_logits(masks_pred.float(), true_masks)
            optimizer.zero_grad(set_to_none=True)
            grad_scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), gradient_clipping)
            grad_scaler.step(optimizer)
            grad_scaler.update()
        logging.info("epoch %d loss %.4f", epoch, loss.item())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(SEED)
    masks = (torch.rand(16, 1, 16, 16) > 0.6).float()
    data = TensorDataset(masks + 0.3 * torch.randn_like(masks), masks)
    train_model(UNet(), DataLoader(data, batch_size=4, shuffle=True), max(1, STEPS // 4))
