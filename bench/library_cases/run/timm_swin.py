"""Two steps of a tiny Swin V2 with drop path."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

torch.library.define("torchvision::nms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
from timm.models.swin_transformer_v2 import SwinTransformerV2

p = argparse.ArgumentParser(); p.add_argument("--dump"); o = p.parse_args()
oracle.setup(0)
model = SwinTransformerV2(img_size=32, patch_size=2, window_size=4, embed_dim=16, depths=(2, 2), num_heads=(2, 4), num_classes=10, drop_path_rate=0.2)
oracle.reinit(model)
model.train()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
x, y = torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,))
with oracle.record(o.dump):
    for step in range(2):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
