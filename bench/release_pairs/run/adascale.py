"""AdaScale with gradient accumulation over two micro-batches."""
import argparse
import torch
from torch import nn
from fairscale.optim import AdaScale

p = argparse.ArgumentParser(); p.add_argument("--steps", type=int, default=5); p.add_argument("--accumulate", type=int, default=2); o = p.parse_args()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
base = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
opt = AdaScale(base, num_gradients_to_accumulate=o.accumulate)
x = torch.randn(256, 8)
y = x @ torch.randn(8, 2) + 0.3 * torch.randn(256, 2)
for step in range(o.steps):
    total = 0.0
    for part in torch.randperm(256)[:66].chunk(o.accumulate):
        loss = nn.functional.mse_loss(model(x[part]), y[part]) / o.accumulate
        loss.backward()
        total += loss.item()
    opt.step()
    opt.zero_grad()
    print(f"step {step} loss {total}", flush=True)
