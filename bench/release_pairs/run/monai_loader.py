"""Batches from MONAI's shuffling loader, one pass."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from monai.data import DataLoader, Dataset

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
oracle.reinit(net, std=0.4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
samples = torch.randn(12, 7)
with oracle.record(o.dump):
    loader = DataLoader(Dataset([{"x": s[:6], "y": s[6:]} for s in samples]), batch_size=4, shuffle=True)
    for step, batch in enumerate(loader):
        loss = nn.functional.mse_loss(net(batch["x"]), batch["y"])
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
