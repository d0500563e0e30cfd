"""Three steps of schedule-free AdamW with warmup on a small regression."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from schedulefree import AdamWScheduleFree

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--foreach", type=int, default=0); o = p.parse_args()
oracle.setup(0)
model = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 4))
oracle.reinit(model)
opt = AdamWScheduleFree(model.parameters(), lr=1e-2, warmup_steps=2, weight_decay=0.05, foreach=bool(o.foreach))
x, y = torch.randn(16, 12), torch.randn(16, 4)
opt.train()
with oracle.record(o.dump):
    for step in range(3):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
