import argparse
import os

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--freeze", nargs="*", default=["backbone."])
parser.add_argument("--steps", type=int, default=int(os.environ.get("STEPS", "8")))
parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "0")))
opt = parser.parse_args()


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.SiLU(), nn.Conv2d(8, 12, 3, 2, 1), nn.SiLU())
        self.neck = nn.Conv2d(12, 12, 1)
        self.detect = nn.Conv2d(12, 5, 1)

    def forward(self, x):
        return self.detect(torch.relu(self.neck(self.backbone(x))))


def train():
    torch.manual_seed(opt.seed)
    model = Detector()
    freeze = [k for k, _ in model.named_parameters() if any(k.startswith(f) for f in opt.freeze)]

    pg0, pg1 = [], []
    for k, v in model.named_parameters():
        v.requires_grad = True
        (pg0 if k.endswith(".bias") else pg1).append(v)

    optimizer = torch.optim.SGD(pg0, lr=0.01, momentum=0.937, nesterov=True)
    optimizer.add_param_group({"params": pg1, "weight_decay": 5e-4})
    model.train()
    for i in range(opt.steps):
        imgs = torch.rand(4, 3, 16, 16)
        pred = model(imgs)
        box = (pred[:, :4] - imgs.mean((2, 3), keepdim=True).mean(1, keepdim=True)).pow(2).mean()
        loss = box + nn.functional.softplus(-pred[:, 4]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{i} box {box.item():.4f} loss {loss.item():.4f}")


if __name__ == "__main__":
    train()
