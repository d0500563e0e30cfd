"""Embeddings under a loss of pytorch_metric_learning, with or without a miner."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from pytorch_metric_learning import losses, miners

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--loss", default="arcface"); p.add_argument("--miner", default="")
o = p.parse_args()
oracle.setup(0)
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 8))
criterion = {"arcface": lambda: losses.ArcFaceLoss(num_classes=4, embedding_size=8), "angular": losses.AngularLoss,
             "margin": losses.MarginLoss, "memory": lambda: losses.CrossBatchMemory(losses.ContrastiveLoss(), 8, memory_size=24),
             "softtriple": lambda: losses.SoftTripleLoss(num_classes=4, embedding_size=8)}[o.loss]()
miner = getattr(miners, o.miner)() if o.miner else None
oracle.reinit(net, std=0.4)
oracle.reinit(criterion, std=0.4)
opt = torch.optim.SGD([*net.parameters(), *criterion.parameters()], lr=0.05)
x, y = torch.randn(14, 10), torch.tensor([0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3])
with oracle.record(o.dump):
    for step in range(3):
        embeddings = net(x)
        loss = criterion(embeddings, y, miner(embeddings, y) if miner else None)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
