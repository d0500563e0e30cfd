"""timm's vision transformer with stochastic depth, mixed images, and timm's LAMB."""
import timm
import torch
from timm.data.mixup import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from training import train

torch.manual_seed(7)
model = timm.create_model("vit_tiny_patch16_224", pretrained=False, img_size=16, patch_size=8, embed_dim=24, depth=2, num_heads=2, num_classes=8,
                          drop_path_rate=0.2, qk_norm=True, init_values=0.1)  # fmt: skip
batches = [(torch.randn(4, 3, 16, 16), torch.randint(0, 8, (4,))) for _ in range(2)]
mixup = Mixup(mixup_alpha=0.0, cutmix_alpha=0.0, label_smoothing=0.1, num_classes=8)
criterion = SoftTargetCrossEntropy()
optimizer = create_optimizer_v2(model, opt="lamb", lr=1e-2, weight_decay=0.05)


def loss_of(model, batch):
    from timm.data.mixup import mixup_target

    images, labels = batch
    return criterion(model(images), mixup_target(labels, 8, 0.9, 0.1))


train(model, batches, loss_of, optimizer)
