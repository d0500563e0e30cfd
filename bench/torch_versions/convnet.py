"""A convolutional network: Conv2d, BatchNorm with its buffers, pooling, bfloat16 autocast, SGD with momentum, a schedule."""

import torch
import torch.nn.functional as F
from ending import arguments, tell_loss, tell_model
from torch import nn


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)

    def forward(self, x):
        y = torch.relu(self.norm(self.conv(x)))
        return y + x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.blocks, self.head = nn.Conv2d(3, 8, 3, stride=2), nn.ModuleList([Block(8), Block(8)]), nn.Linear(8, 10)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def main():
    options = arguments()
    model = Model()
    run = torch.compile(model, backend=options.compile) if options.compile else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    for step in range(options.steps):
        images, labels = torch.randn(4, 3, 13, 13), torch.randint(0, 10, (4,))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = run(images)
        loss = F.cross_entropy(scores.float(), labels, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        tell_loss(step, loss)
    tell_model(model, optimizer)


if __name__ == "__main__":
    main()
