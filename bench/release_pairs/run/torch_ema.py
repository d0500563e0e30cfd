"""torch_ema's average beside a small training, put in place for an evaluation."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from torch_ema import ExponentialMovingAverage

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
model = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 4))
oracle.reinit(model, std=0.3)
ema = ExponentialMovingAverage(model.parameters(), decay=0.9)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(16, 12), torch.randn(16, 4)
with oracle.record(o.dump):
    for step in range(3):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        ema.update(model.parameters())
        ema.store(model.parameters())
        ema.copy_to(model.parameters())
        with torch.no_grad():
            averaged = nn.functional.mse_loss(model(x), y)
        ema.restore(model.parameters())
        print("step", step, "loss", repr(loss.item()), "averaged loss", repr(averaged.item()), flush=True)
