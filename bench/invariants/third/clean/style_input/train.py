"""Neural style: the image is the only parameter; a frozen feature network gives content and Gram losses."""
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
SIZE = 32
STYLE_LAYERS, CONTENT_LAYER = ("relu1", "relu2", "relu3"), "relu3"


def content_image():
    """A disc and a bar on a plain ground."""
    g = torch.linspace(-1, 1, SIZE)
    gy, gx = torch.meshgrid(g, g, indexing="ij")
    disc = ((gx + 0.3) ** 2 + (gy + 0.2) ** 2 < 0.15).float()
    bar = ((gx - 0.5).abs() < 0.15).float()
    img = torch.stack([0.2 + 0.6 * disc, 0.3 + 0.4 * bar, 0.5 - 0.3 * disc + 0.2 * bar])
    return img.clamp(0, 1).unsqueeze(0)


def style_image():
    """Diagonal coloured waves."""
    g = torch.linspace(0, 6 * math.pi, SIZE)
    gy, gx = torch.meshgrid(g, g, indexing="ij")
    return torch.stack([0.5 + 0.5 * torch.sin(gx + gy), 0.5 + 0.5 * torch.sin(gx - gy), 0.5 + 0.5 * torch.cos(gx)]).unsqueeze(0)


class Features(nn.Module):
    """Random, orthogonally initialised VGG-like features; fixed for the whole run."""

    def __init__(self, widths=(12, 16, 24)):
        super().__init__()
        self.convs = nn.ModuleList()
        c = 3
        for w in widths:
            conv = nn.Conv2d(c, w, 3, padding=1, padding_mode="reflect")
            nn.init.orthogonal_(conv.weight, gain=math.sqrt(2))
            nn.init.zeros_(conv.bias)
            self.convs.append(conv)
            c = w
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))

    def forward(self, x):
        out, x = {}, (x - self.mean) / self.std
        for i, conv in enumerate(self.convs):
            if i:
                x = F.avg_pool2d(x, 2)
            x = F.relu(conv(x))
            out[f"relu{i + 1}"] = x
        return out


def gram(x):
    b, c, h, w = x.shape
    f = x.view(b, c, h * w)
    return f @ f.transpose(1, 2) / (c * h * w)


def total_variation(x):
    return (x[..., 1:, :] - x[..., :-1, :]).abs().mean() + (x[..., 1:] - x[..., :-1]).abs().mean()


def main():
    torch.manual_seed(SEED)
    features = Features().eval().requires_grad_(False)
    content, style = content_image(), style_image()
    with torch.no_grad():
        content_target = features(content)[CONTENT_LAYER]
        style_features = features(style)
        style_targets = {k: gram(style_features[k]) for k in STYLE_LAYERS}

    start = content + 0.05 * torch.randn_like(content)
    image = nn.Parameter(start.clamp(0, 1))
    opt = torch.optim.Adam([image], lr=0.03)
    sched = torch.optim.lr_scheduler.ExponentialLR(opt, gamma=0.97)

    best, best_image = math.inf, None
    for step in range(STEPS):
        opt.zero_grad()
        feats = features(image)
        c_loss = F.mse_loss(feats[CONTENT_LAYER], content_target)
        s_loss = sum(F.mse_loss(gram(feats[k]), style_targets[k]) for k in STYLE_LAYERS)
        tv = total_variation(image)
        loss = c_loss + 20.0 * s_loss + 0.05 * tv
        if loss.item() < best:  # the loss of the image before this update
            best, best_image = loss.item(), image.detach().clone()
        loss.backward()
        opt.step()
        sched.step()
        with torch.no_grad():
            image.clamp_(0, 1)
        print(step, f"loss {loss.item():.4f} content {c_loss.item():.4f} style {s_loss.item():.4f} tv {tv.item():.4f}")

    print("best", f"{best:.4f}", "moved", f"{(best_image - content).abs().mean().item():.4f}")
    assert 0.0 <= best_image.min() and best_image.max() <= 1.0


if __name__ == "__main__":
    main()
