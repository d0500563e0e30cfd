import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
TEMPERATURE = 3.0


def conv_net(width, dropout):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.Linear(2 * width, 3),
    )  # fmt: skip


def train_teacher(teacher, loader):
    opt = torch.optim.SGD(teacher.parameters(), lr=0.05, momentum=0.9)
    teacher.train()
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(teacher(x), y).backward()
        opt.step()


def main():
    torch.manual_seed(SEED)
    x = torch.randn(96, 1, 8, 8)
    y = (x.mean((1, 2, 3)) * 12).long().clamp(-1, 1) + 1
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    teacher = conv_net(12, 0.2)
    train_teacher(teacher, loader)
    teacher.eval()
    for p in teacher.parameters():
        p.requires_grad_(False)

    student = conv_net(4, 0.0)
    opt = torch.optim.Adam(student.parameters(), lr=5e-3)
    done = 0
    while done < STEPS:
        student.train()
        for xb, yb in loader:
            if done == STEPS:
                break
            with torch.no_grad():
                soft = F.softmax(teacher(xb) / TEMPERATURE, dim=1)
            logits = student(xb)
            kd = F.kl_div(F.log_softmax(logits / TEMPERATURE, dim=1), soft, reduction="batchmean") * TEMPERATURE**2
            loss = 0.7 * kd + 0.3 * F.cross_entropy(logits, yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            done += 1
        student.eval()
        with torch.no_grad():
            agree = (student(x).argmax(1) == teacher(x).argmax(1)).float().mean()
        print(f"{done} loss {loss.item():.4f} agreement {agree.item():.3f}")


main()
