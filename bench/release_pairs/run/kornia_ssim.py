"""A denoiser under kornia's SSIM loss."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from kornia.losses import SSIMLoss

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
net = nn.Conv2d(1, 1, 3, padding=1)
oracle.reinit(net, std=0.3)
criterion = SSIMLoss(5)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
clean = torch.rand(2, 1, 12, 12)
noisy = clean + 0.1 * torch.randn(2, 1, 12, 12)
with oracle.record(o.dump):
    for step in range(2):
        loss = criterion(net(noisy), clean)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
