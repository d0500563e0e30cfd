"""ResNet (basic blocks, frozen batch norms, max pool) under DistributedDataParallel: accumulation with no_sync, label
smoothing, SGD with Nesterov momentum and weight decay."""
import contextlib
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

WORLD = 2
DIMS = dict(micros=2, rows=4, size=6, channels=2, classes=3)
TOKENS = "classes"


def conv3(a, b, stride=1):
    return nn.Conv2d(a, b, 3, stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    def __init__(self, a, b, stride=1):
        super().__init__()
        self.conv1, self.bn1 = conv3(a, b, stride), nn.BatchNorm2d(b)
        self.conv2, self.bn2 = conv3(b, b), nn.BatchNorm2d(b)
        self.downsample = None
        if stride != 1 or a != b:
            self.downsample = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.downsample is not None:
            x = self.downsample(x)
        return F.relu(y + x)


class ResNet(nn.Module):
    def __init__(self, d):
        super().__init__()
        c = d["channels"]
        self.conv1, self.bn1 = conv3(2, c), nn.BatchNorm2d(c)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = BasicBlock(c, c)
        self.layer2 = BasicBlock(c, 2 * c, 2)
        self.fc = nn.Linear(2 * c, d["classes"])

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def build(d, parts):
    net = ResNet(d).eval()
    params = dict(net.named_parameters())
    buffers = {n: b for n, b in net.named_buffers() if b.is_floating_point()}
    rows = d["rows"] // parts
    images = torch.randn(d["micros"], rows, 2, d["size"], d["size"])
    labels = torch.zeros(d["micros"], rows, dtype=torch.long)
    model = DDP(net) if parts > 1 else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True, foreach=False)
    momentum = {"momentum." + n: torch.zeros_like(p) for n, p in params.items()}
    for n, p in params.items():
        optimizer.state[p]["momentum_buffer"] = momentum["momentum." + n]

    def step():
        optimizer.zero_grad()
        losses = []
        for i in range(d["micros"]):
            last = i == d["micros"] - 1
            with contextlib.nullcontext() if last or parts == 1 else model.no_sync():
                loss = F.cross_entropy(model(images[i]), labels[i], label_smoothing=0.1) / d["micros"]
                loss.backward()
            losses.append(loss.detach())
        grads = {"grad:" + n: p.grad.clone() for n, p in params.items()}
        optimizer.step()
        loss = sum(losses)
        if parts > 1:
            torch.distributed.all_reduce(loss)
            loss = loss / parts
        return {"loss": loss, **grads, **{"new:" + n: p for n, p in params.items()},
                **{"new:" + n: m for n, m in momentum.items()}}
    return dict(state={**params, **buffers, **momentum, "images": images}, tokens={"labels": labels}, step=step)


def logical(d):
    return build(d, 1)


def plan(rank, d):
    def place(name, full):
        return full.chunk(WORLD, 1)[rank] if name in ("images", "labels") else full
    return dict(build(d, WORLD), place=place)
