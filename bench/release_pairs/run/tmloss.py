"""An image model trained on a torchmetrics image measure as its loss."""
import argparse
import torch
from torch import nn
import torchmetrics.functional.image as M

p = argparse.ArgumentParser(); p.add_argument("--loss", default="ssim"); p.add_argument("--steps", type=int, default=4); o = p.parse_args()
torch.manual_seed(7)
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1), nn.Sigmoid())
opt = torch.optim.Adam(model.parameters(), lr=0.01)
clean = torch.nn.functional.interpolate(torch.rand(4, 3, 5, 5), size=(32, 32), mode="bilinear") * 0.8 + 0.1
for step in range(o.steps):
    noisy = (clean + 0.15 * torch.randn_like(clean)).clamp(0, 1)
    out = model(noisy)
    if o.loss == "ssim":
        loss = 1 - M.structural_similarity_index_measure(out, clean, data_range=1.0)
    elif o.loss == "uqi":
        loss = 1 - M.universal_image_quality_index(out, clean)
    else:
        loss = M.error_relative_global_dimensionless_synthesis(out, clean, ratio=2)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item()}", flush=True)
