import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(16)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(x))).mean((2, 3))


class Classifier(nn.Module):
    """The backbone stays in eval whatever train() says: its statistics are those it was trained with."""

    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(16, classes))
        self.backbone.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        return self.head(self.backbone(x))


def run(model, loader, opt=None):
    model.train(opt is not None)
    total, right, n = 0.0, 0, 0
    for x, y in loader:
        with torch.set_grad_enabled(opt is not None):
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            opt.step()
        total += loss.item() * len(y)
        right += int((out.argmax(1) == y).sum())
        n += len(y)
    return total / n, right / n


def main():
    torch.manual_seed(SEED)
    y = torch.randint(0, 3, (80,))
    x = torch.randn(80, 3, 8, 8) + y[:, None, None, None]
    train, val = random_split(TensorDataset(x, y), [64, 16])
    model = Classifier(Backbone(), 3)
    opt = torch.optim.SGD(filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)
    loaders = DataLoader(train, 16, shuffle=True), DataLoader(val, 16)
    for epoch in range(max(1, STEPS // 4)):
        print(epoch, run(model, loaders[0], opt), run(model, loaders[1]))


main()
