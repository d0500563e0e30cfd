"""A tagger under torchcrf's log likelihood, sequences of several lengths."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from torchcrf import CRF

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--padded", type=int, default=1); o = p.parse_args()
oracle.setup(0)
net = nn.Linear(6, 4)
crf = CRF(4)
oracle.reinit(net, std=0.4); oracle.reinit(crf, std=0.4)
opt = torch.optim.SGD([*net.parameters(), *crf.parameters()], lr=0.05)
x, tags = torch.randn(24, 3, 6), torch.randint(0, 4, (24, 3))
lengths = torch.tensor([24, 17, 9]) if o.padded else torch.tensor([24, 24, 24])
mask = (torch.arange(24)[:, None] < lengths).to(torch.uint8)
with oracle.record(o.dump):
    for step in range(3):
        loss = -crf(net(x), tags, mask=mask)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
