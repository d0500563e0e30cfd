"""timm's vision transformer."""
import timm
import torch
import torch.nn.functional as F
from weights import CLASSES, DIM, HEADS, LAYERS, PATCH, SIZE, batch, state

torch.set_num_threads(1)
timm.layers.set_fused_attn(False)
model = timm.models.VisionTransformer(img_size=SIZE, patch_size=PATCH, num_classes=CLASSES, embed_dim=DIM, depth=LAYERS, num_heads=HEADS, mlp_ratio=2.0)
model.load_state_dict(state())
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3, foreach=False)
for step in range(2):
    images, labels = batch(step)
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.9f} norm {norm.item():.9f}", flush=True)
