"""A point cloud is moved onto another by one of geomloss's losses."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from geomloss import SamplesLoss

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--loss", default="gaussian"); p.add_argument("--reach", type=float)
o = p.parse_args()
oracle.setup(0)
net = nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 3))
oracle.reinit(net, std=0.4)
criterion = SamplesLoss(o.loss, p=2, blur=0.5, reach=o.reach, backend="tensorized")
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x, y = torch.randn(2, 12, 3), torch.randn(2, 9, 3) + 0.5
with oracle.record(o.dump):
    for step in range(3):
        loss = criterion(net(x), y).sum()
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
