"""A small vision transformer under bf16 autocast, losses in float32; weights and optimizer in float32."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, heads, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.ff(self.norm2(x))


class Vit(nn.Module):
    def __init__(self, d=16, patch=4, size=16, classes=3):
        super().__init__()
        self.patch = nn.Conv2d(3, d, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, d))
        self.pos = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, d) * 0.02)
        self.layers = nn.ModuleList([Layer(d, 2) for _ in range(2)])
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x[:, 0]))


def groups(model, wd):
    decay = [p for p in model.parameters() if p.ndim >= 2]
    plain = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": decay, "weight_decay": wd}, {"params": plain, "weight_decay": 0.0}]


torch.manual_seed(SEED)
model = Vit()
opt = torch.optim.AdamW(groups(model, 0.1), lr=2e-3, fused=False)
for step in range(STEPS):
    y = torch.randint(0, 3, (8,))
    x = torch.randn(8, 3, 16, 16) + y[:, None, None, None]
    opt.zero_grad(set_to_none=True)
    with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
        logits = model(x)
    loss = F.cross_entropy(logits.float(), y)
    loss.backward()
    opt.step()
    if step % 2 == 1:
        with torch.inference_mode(), torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            print(step, loss.item(), (model(x).argmax(1) == y).float().mean().item())
