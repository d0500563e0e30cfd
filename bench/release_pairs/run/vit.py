"""Two steps of a small vision transformer of vit_pytorch."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import types

import torch

# vit_pytorch imports torchvision for augmentations that nobody here uses.
sys.modules["torchvision"] = types.ModuleType("torchvision")
sys.modules["torchvision"].transforms = sys.modules["torchvision.transforms"] = types.ModuleType("torchvision.transforms")

from vit_pytorch import SimpleViT, ViT

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--model", default="simple"); o = p.parse_args()
oracle.setup(0)


def same_weights(model, std=0.2):
    """Matrices by their order, whatever a release calls them."""
    with torch.no_grad():
        for i, q in enumerate(q for q in model.parameters() if q.ndim > 1):
            q.copy_(torch.randn(q.shape, generator=torch.Generator().manual_seed(i)) * std)
    torch.manual_seed(0)
    return model


sizes = dict(image_size=16, patch_size=4, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32, dim_head=8)
model = same_weights(SimpleViT(**sizes) if o.model == "simple" else ViT(**sizes))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
images, labels = torch.randn(4, 3, 16, 16), torch.randint(0, 5, (4,))
with oracle.record(o.dump):
    for step in range(2):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
