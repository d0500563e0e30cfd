"""A small net under transformers' warmup-stable-decay schedule with a least rate."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from transformers import get_wsd_schedule

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
model = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 4))
oracle.reinit(model)
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = get_wsd_schedule(opt, num_warmup_steps=3, num_stable_steps=2, num_decay_steps=3, min_lr_ratio=0.1)
x, y = torch.randn(16, 12), torch.randn(16, 4)
with oracle.record(o.dump):
    for step in range(4):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward(); opt.step(); opt.zero_grad(); schedule.step()
        print("step", step, "loss", repr(loss.item()), flush=True)
