"""Augmented tensors through torchvision's transforms into a small net."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from torch import nn
torch.library.define("torchvision::nms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
from torchvision import transforms as T

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
model(torch.zeros(1, 3, 16, 16))
oracle.reinit(model)
augment = T.Compose([T.RandomHorizontalFlip(), T.RandomResizedCrop(16), T.Normalize([0.5] * 3, [0.25] * 3)])
opt = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
images, y = torch.rand(8, 3, 40, 40), torch.randint(0, 10, (8,))
with oracle.record(o.dump):
    for step in range(3):
        x = torch.stack([augment(image) for image in images])
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
