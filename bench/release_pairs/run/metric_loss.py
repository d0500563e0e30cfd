"""A denoiser trained on 1 - SSIM of torchmetrics."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
from torchmetrics.functional import pairwise_cosine_similarity

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--what", default="ssim"); o = p.parse_args()
oracle.setup(0)
net = nn.Conv2d(1, 1, 3, padding=1)
oracle.reinit(net, std=0.3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
clean = torch.rand(2, 1, 24, 24)
noisy = clean + 0.1 * torch.randn(2, 1, 24, 24)
if o.what == "ssim":
    from torchmetrics.functional.image import structural_similarity_index_measure
with oracle.record(o.dump):
    for step in range(2):
        if o.what == "ssim":
            loss = 1 - structural_similarity_index_measure(net(noisy), clean, data_range=1.0)
        else:
            loss = 1 - pairwise_cosine_similarity(net(noisy).flatten(1), clean.flatten(1)).mean()
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
