"""An averaged copy beside a small training; what the average says is printed."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from ema_pytorch import EMA

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--foreach", type=int, default=-1); p.add_argument("--steps", type=int, default=5)
o = p.parse_args()
oracle.setup(0)
model = nn.Sequential(nn.Linear(12, 24), nn.BatchNorm1d(24), nn.GELU(), nn.Linear(24, 4))
oracle.reinit(model, std=0.3)
more = {} if o.foreach < 0 else {"use_foreach": bool(o.foreach)}
ema = EMA(model, beta=0.99, update_after_step=1, update_every=1, **more)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
x, y = torch.randn(16, 12), torch.randn(16, 4)
with oracle.record(o.dump):
    for step in range(o.steps):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        ema.update()
        with torch.no_grad():
            averaged = nn.functional.mse_loss(ema.ema_model(x), y)
        print("step", step, "loss", repr(loss.item()), "averaged loss", repr(averaged.item()), flush=True)
