"""Two steps of a small net whose head is timm's rotary attention pooling."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
torch.library.define("torchvision::nms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
from timm.layers.attention_pool2d import RotAttentionPool2d

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
model = nn.Sequential(nn.Conv2d(3, 32, 4, stride=4), nn.GELU(), RotAttentionPool2d(32, out_features=10, num_heads=2))
oracle.reinit(model)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
x, y = torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,))
with oracle.record(o.dump):
    for step in range(2):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
