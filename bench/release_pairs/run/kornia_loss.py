"""Two steps of a small segmentation net under one of kornia's losses."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from kornia.losses import DiceLoss, FocalLoss, TverskyLoss

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--loss", default="focal"); o = p.parse_args()
oracle.setup(0)
net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 5, 1))
oracle.reinit(net, std=0.2)
criterion = FocalLoss(alpha=0.25, gamma=2.0, reduction="mean") if o.loss == "focal" else DiceLoss() if o.loss == "dice" else TverskyLoss(0.3, 0.7)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
images, labels = torch.randn(2, 3, 8, 8), torch.randint(0, 5, (2, 8, 8))
with oracle.record(o.dump):
    for step in range(2):
        loss = criterion(net(images), labels)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
