"""A small image restorer trained with (multi scale) structural similarity."""
import argparse
import pytorch_msssim
import torch
from torch import nn

p = argparse.ArgumentParser(); p.add_argument("--loss", default="SSIM"); p.add_argument("--size", type=int, default=32); p.add_argument("--steps", type=int, default=4); o = p.parse_args()
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1), nn.Sigmoid())
criterion = getattr(pytorch_msssim, o.loss)(data_range=1.0, size_average=True, channel=3)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(o.steps):
    clean = nn.functional.interpolate(torch.rand(2, 3, 8, 8), size=(o.size, o.size), mode="bilinear", align_corners=False)
    noisy = (clean + 0.1 * torch.randn_like(clean)).clamp(0, 1)
    opt.zero_grad()
    loss = 1 - criterion(0.5 * model(noisy) + 0.5 * noisy, clean)
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item()}", flush=True)
