import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))


class BasicBlock(nn.Module):
    def __init__(self, i, o, stride=1):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.conv2, self.bn2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.short = nn.Sequential()
        if stride != 1 or i != o:
            self.short = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        h = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(h)) + self.short(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.layer1, self.layer2 = BasicBlock(8, 8), BasicBlock(8, 16, 2)
        self.fc = nn.Linear(16, 5)

    def forward(self, x):
        return self.fc(self.layer2(self.layer1(self.stem(x))).mean((2, 3)))


def main():
    torch.manual_seed(SEED)
    y = torch.randint(0, 5, (72,))
    x = torch.randn(72, 3, 8, 8) + y.view(-1, 1, 1, 1) / 5
    train = DataLoader(TensorDataset(x[:56], y[:56]), batch_size=16, shuffle=True)
    test = DataLoader(TensorDataset(x[56:], y[56:]), batch_size=16)
    net = ResNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    epochs = max(1, STEPS // len(train))
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, epochs=epochs, steps_per_epoch=len(train))
    for epoch in range(epochs):
        net.train()
        for inputs, targets in train:
            outputs = net(inputs)
            loss = criterion(outputs, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
        net.eval()
        correct = 0
        with torch.no_grad():
            for inputs, targets in test:
                correct += net(inputs).argmax(1).eq(targets).sum().item()
        print(epoch, loss.item(), correct / 16)


main()
