"""A small multi-axis vision net (MBConv and window attention), ported from a TF code base."""
import os
import tempfile
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
CLASSES = 4
BATCH = 16
BN_DECAY = 0.9
BN_EPSILON = 1e-3


class Blobs(Dataset):
    """The class is the quadrant in which a bright spot lies."""

    def __init__(self, length, seed):
        self.length, self.seed = length, seed

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        label = int(torch.randint(CLASSES, (1,), generator=g))
        cy, cx = (torch.randint(2, 6, (2,), generator=g) + 8 * torch.tensor([label // 2, label % 2])).tolist()
        image = 0.3 * torch.randn(3, 16, 16, generator=g) + 0.5 * torch.rand(3, 1, 1, generator=g)
        image[:, cy - 1:cy + 2, cx - 1:cx + 2] += 2.0
        return image, label


class SqueezeExcite(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(dim, dim // 4, 1), nn.Conv2d(dim // 4, dim, 1)

    def forward(self, x):
        s = x.mean((2, 3), keepdim=True)
        return x * self.fc2(F.silu(self.fc1(s))).sigmoid()


class MBConv(nn.Module):
    def __init__(self, cin, cout, stride, norm):
        super().__init__()
        mid = 4 * cout
        self.pre = norm(cin)
        self.expand = nn.Conv2d(cin, mid, 1, bias=False)
        self.norm1 = norm(mid)
        self.depth = nn.Conv2d(mid, mid, 3, stride, 1, groups=mid, bias=False)
        self.norm2 = norm(mid)
        self.se = SqueezeExcite(mid)
        self.project = nn.Conv2d(mid, cout, 1)
        self.stride = stride
        self.shortcut = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x):
        y = F.gelu(self.norm1(self.expand(self.pre(x))))
        y = self.se(F.gelu(self.norm2(self.depth(y))))
        if self.stride > 1:
            x = F.avg_pool2d(x, self.stride)
        return self.shortcut(x) + self.project(y)


class WindowAttention(nn.Module):
    def __init__(self, dim, window, heads=2):
        super().__init__()
        self.window, self.heads = window, heads
        self.norm = nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, c, h, w = x.shape
        n = self.window
        t = x.view(b, c, h // n, n, w // n, n).permute(0, 2, 4, 3, 5, 1).reshape(-1, n * n, c)
        q, k, v = (z.unflatten(-1, (self.heads, -1)).transpose(1, 2) for z in self.qkv(self.norm(t)).chunk(3, -1))
        t = t + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return t.view(b, h // n, w // n, n, n, c).permute(0, 5, 1, 3, 2, 4).reshape(b, c, h, w)


class MaxNet(nn.Module):
    def __init__(self, norm_layer=None):
        super().__init__()
        if norm_layer is None:
            norm_layer = partial(nn.BatchNorm2d, eps=BN_EPSILON, momentum=BN_DECAY)
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), norm_layer(16), nn.GELU())
        self.stages = nn.Sequential(
            MBConv(16, 16, 2, norm_layer), WindowAttention(16, 4),
            MBConv(16, 32, 2, norm_layer), WindowAttention(32, 4))
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32 * 16, CLASSES)
        self.apply(self._init_weights)

    @staticmethod
    def _init_weights(m):
        if isinstance(m, nn.Conv2d):
            nn.init.kaiming_normal_(m.weight)
            if m.bias is not None:
                nn.init.zeros_(m.bias)
        elif isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=0.02)
            nn.init.zeros_(m.bias)

    def forward(self, x):
        x = self.stages(self.stem(x)).flatten(2).transpose(1, 2)
        return self.head(self.norm(x).flatten(1))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    loss, hits, count = 0.0, 0, 0
    for x, y in loader:
        logits = model(x)
        loss += F.cross_entropy(logits, y, reduction="sum").item()
        hits += int((logits.argmax(1) == y).sum())
        count += len(y)
    model.train()
    return loss / count, hits / count


def main():
    torch.manual_seed(SEED)
    loader = DataLoader(Blobs(BATCH * STEPS, 1 + SEED), BATCH, shuffle=True)
    test = DataLoader(Blobs(64, 8000), 32)
    model = MaxNet()
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": rest, "weight_decay": 0.0}], lr=3e-3)
    model.train()
    for step, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y, label_smoothing=0.05)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"step {step} loss {loss.item():.4f}")
    print("eval loss {:.4f} accuracy {:.3f}".format(*evaluate(model, test)))
    with tempfile.TemporaryDirectory() as d:
        torch.save({"model": model.state_dict(), "opt": opt.state_dict()}, os.path.join(d, "maxnet.pt"))


if __name__ == "__main__":
    main()
