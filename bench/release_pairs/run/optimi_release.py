"""optimi's AdamW, its step after the backward pass or within it (gradient release)."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
import optimi

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--release", type=int, default=0); p.add_argument("--dtype", default="float32")
p.add_argument("--optimizer", default="AdamW"); o = p.parse_args()
oracle.setup(0)
dtype = getattr(torch, o.dtype)
model = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 4)).to(dtype)
oracle.reinit(model, std=0.3)
more = {"gradient_release": True} if o.release else {}
opt = getattr(optimi, o.optimizer)(model.parameters(), lr=1e-2, weight_decay=0.1, **more)
if o.release:
    optimi.prepare_for_gradient_release(model, opt)
x, y = torch.randn(16, 12).to(dtype), torch.randn(16, 4).to(dtype)
with oracle.record(o.dump):
    for step in range(4):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
