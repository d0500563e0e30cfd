"""A small convolutional classifier trained with RangerAdaBelief and coupled weight decay."""
import argparse
import torch
from torch import nn
from ranger_adabelief import RangerAdaBelief

p = argparse.ArgumentParser(); p.add_argument("--steps", type=int, default=6); p.add_argument("--decay", type=float, default=0.05); o = p.parse_args()
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
opt = RangerAdaBelief(model.parameters(), lr=0.02, weight_decay=o.decay, weight_decouple=False, betas=(0.9, 0.99))
x, y = torch.randn(16, 1, 8, 8), torch.randint(0, 3, (16,))
for step in range(o.steps):
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item()}", flush=True)
