import os

import torch
import torch.nn as nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        return sum(nn.functional.cross_entropy(model(x), y).item() for x, y in loader) / len(loader)


def main():
    torch.manual_seed(SEED)
    y = torch.arange(64) % 4
    x = torch.randn(64, 1, 6, 6) + y[:, None, None, None] * 0.5
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    plain = DataLoader(TensorDataset(x, y), batch_size=32)
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(96, 4)
    )
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    averaged = AveragedModel(model)
    epochs = max(2, STEPS // len(loader))
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)
    swa = SWALR(opt, swa_lr=0.01)
    for epoch in range(epochs):
        model.train()
        for a, b in loader:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(a), b)
            loss.backward()
            opt.step()
        if epoch >= epochs // 2:
            averaged.update_parameters(model)
            swa.step()
        else:
            cosine.step()
        print(epoch, loss.item(), evaluate(model, plain))
    update_bn(loader, averaged)
    print("swa", evaluate(averaged, plain))


main()
