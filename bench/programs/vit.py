"""timm's vision transformer with stochastic depth, its own AdamW groups and gradient clipping."""
import timm
import torch
import torch.nn.functional as F
from loop import train
from timm.optim import create_optimizer_v2

torch.manual_seed(6)
model = timm.create_model("vit_tiny_patch16_224", pretrained=False, img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=4,
                          num_classes=10, drop_path_rate=0.2)  # fmt: skip
batches = [{"x": torch.randn(4, 3, 32, 32), "target": torch.randint(0, 10, (4,))} for _ in range(2)]
optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
train(model, batches, optimizer, lambda model, batch: F.cross_entropy(model(batch["x"]), batch["target"]))
