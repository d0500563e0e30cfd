"""Two steps of timm's LAMB on a tiny ViT, gradients above the clipping norm."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

torch.library.define("torchvision::nms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
from timm.models.vision_transformer import VisionTransformer
from timm.optim import Lamb

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
model = VisionTransformer(img_size=32, patch_size=8, embed_dim=48, depth=1, num_heads=3, num_classes=10)
oracle.reinit(model)
opt = Lamb(model.parameters(), lr=1e-2, weight_decay=0.02, max_grad_norm=0.5)
x, y = torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,))
with oracle.record(o.dump):
    for step in range(2):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
