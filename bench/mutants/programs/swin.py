"""timm's Swin transformer (windows, shifts, relative positions) with timm's AdamP and a cosine schedule."""
import timm
import torch
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import dispatch_clip_grad

torch.manual_seed(9)
model = timm.create_model("swin_tiny_patch4_window7_224", pretrained=False, img_size=32, patch_size=4, window_size=4, embed_dim=16, depths=(2,),
                          num_heads=(2,), num_classes=8, drop_path_rate=0.1)  # fmt: skip
optimizer = create_optimizer_v2(model, opt="adamp", lr=1e-2, weight_decay=0.05)
schedule = CosineLRScheduler(optimizer, t_initial=4, lr_min=1e-4, warmup_t=1, warmup_lr_init=1e-3)
model.train()
for step in range(2):
    images, labels = torch.randn(2, 3, 32, 32), torch.randint(0, 8, (2,))
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    dispatch_clip_grad(model.parameters(), 0.5, mode="norm")
    optimizer.step()
    optimizer.zero_grad()
    schedule.step(step + 1)
    print("step", step, "loss", repr(loss.item()), flush=True)
