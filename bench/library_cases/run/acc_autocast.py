"""Accelerate, mixed precision or not, clipped gradients, two micro-batches a step."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from accelerate import Accelerator

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--mp", default="no"); o = p.parse_args()
oracle.setup(0)
model = nn.Sequential(nn.LayerNorm(12), nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 4))
oracle.reinit(model)
acc = Accelerator(mixed_precision=o.mp, gradient_accumulation_steps=2, cpu=True)
data = torch.utils.data.TensorDataset(torch.randn(24, 12), torch.randint(0, 4, (24,)))
loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
model, opt, loader = acc.prepare(model, opt, loader)
with oracle.record(o.dump):
    for i, (x, y) in enumerate(loader):
        with acc.accumulate(model):
            loss = nn.functional.cross_entropy(model(x), y)
            acc.backward(loss)
            if acc.sync_gradients:
                acc.clip_grad_norm_(model.parameters(), 0.3)
            opt.step(); opt.zero_grad()
        print("batch", i, "loss", repr(loss.item()), flush=True)
