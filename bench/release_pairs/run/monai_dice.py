"""Two steps of a small net under MONAI's Dice or focal loss."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from monai.losses import DiceLoss, FocalLoss, GeneralizedDiceLoss

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--squared", type=int, default=0)
p.add_argument("--generalized", type=int, default=0); p.add_argument("--focal", type=int, default=0); o = p.parse_args()
oracle.setup(0)
net = nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 3, 1))
oracle.reinit(net, std=0.3)
if o.focal:
    criterion = FocalLoss(to_onehot_y=True, gamma=2.0)
elif o.generalized:
    criterion = GeneralizedDiceLoss(to_onehot_y=True, softmax=True)
else:
    criterion = DiceLoss(to_onehot_y=True, softmax=True, squared_pred=bool(o.squared))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
images, labels = torch.randn(2, 2, 8, 8), torch.randint(0, 3, (2, 1, 8, 8))
with oracle.record(o.dump):
    for step in range(2):
        loss = criterion(net(images), labels)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
