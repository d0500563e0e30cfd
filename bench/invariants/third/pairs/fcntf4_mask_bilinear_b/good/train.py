"""Street scene segmentation with a main head, an auxiliary head and a boundary head."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SEED = int(os.environ.get("SEED", "0"))
STEPS = int(os.environ.get("STEPS", "8"))
CLASSES = 4
BATCH = 8


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image, mask, generator):
        for t in self.transforms:
            image, mask = t(image, mask, generator)
        return image, mask


class Resize:
    def __init__(self, size):
        self.size = size

    def __call__(self, image, mask, generator):
        image = F.interpolate(image[None], size=self.size, mode="bilinear", align_corners=False)[0]
        mask = F.interpolate(mask[None, None].float(), size=self.size, mode="nearest")[0, 0]
        return image, mask.long()


class RandomFlip:
    def __call__(self, image, mask, generator):
        if torch.rand(1, generator=generator) < 0.5:
            image, mask = image.flip(-1), mask.flip(-1)
        return image, mask


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = torch.tensor(mean)[:, None, None], torch.tensor(std)[:, None, None]

    def __call__(self, image, mask, generator):
        return (image - self.mean) / self.std, mask


class Streets(Dataset):
    """Rectangles of the classes 1 (pole), 2 (car), 3 (person) on a background 0."""

    palette = torch.tensor([[0.4, 0.4, 0.4], [0.9, 0.2, 0.2], [0.2, 0.9, 0.2], [0.2, 0.2, 0.9]])

    def __init__(self, length, seed, transform):
        self.length, self.seed, self.transform = length, seed, transform

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        mask = torch.zeros(50, 50, dtype=torch.long)
        for _ in range(2):
            label = int(torch.randint(1, CLASSES, (1,), generator=g))
            top, left = torch.randint(0, 34, (2,), generator=g).tolist()
            h, w = torch.randint(8, 17, (2,), generator=g).tolist()
            mask[top:top + h, left:left + w] = label
        image = self.palette[mask].permute(2, 0, 1) + 0.1 * torch.randn(3, 50, 50, generator=g)
        return self.transform(image, mask, g)


class ConvBlock(nn.Sequential):
    def __init__(self, cin, cout, stride=1):
        super().__init__(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU())


class Head(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(ConvBlock(cin, 16), nn.Conv2d(16, cout, 1))


class Fcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = ConvBlock(3, 16)
        self.layer2 = ConvBlock(16, 24, 2)
        self.layer3 = ConvBlock(24, 32, 2)
        self.classifier = Head(32 + 16, CLASSES)
        self.aux_classifier = Head(24, CLASSES)
        self.boundary = Head(16, 1)

    def forward(self, x):
        size = x.shape[-2:]
        f1 = self.layer1(x)
        f2 = self.layer2(f1)
        f3 = self.layer3(f2)
        up = F.interpolate(f3, size=size, mode="bilinear", align_corners=False)
        aux = F.interpolate(self.aux_classifier(f2), size=size, mode="bilinear", align_corners=False)
        return {"out": self.classifier(torch.cat([up, f1], 1)), "aux": aux, "edge": self.boundary(f1)[:, 0]}


def edges(mask):
    m = mask[:, None].float()
    return (F.max_pool2d(m, 3, 1, 1) != -F.max_pool2d(-m, 3, 1, 1))[:, 0].float()


def criterion(outputs, mask):
    return {
        "seg": F.cross_entropy(outputs["out"], mask),
        "aux": 0.4 * F.cross_entropy(outputs["aux"], mask),
        "edge": 0.5 * F.binary_cross_entropy_with_logits(outputs["edge"], edges(mask)),
    }


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    confusion = torch.zeros(CLASSES, CLASSES, dtype=torch.long)
    for images, masks in loader:
        pred = model(images)["out"].argmax(1)
        confusion += torch.bincount(masks.flatten() * CLASSES + pred.flatten(),
                                    minlength=CLASSES ** 2).view(CLASSES, CLASSES)
    model.train()
    inter = confusion.diag().float()
    return inter / (confusion.sum(0) + confusion.sum(1) - inter).clamp(min=1)


def main():
    torch.manual_seed(SEED)
    norm = Normalize([0.4, 0.4, 0.4], [0.2, 0.2, 0.2])
    train = Streets(BATCH * STEPS, 1 + SEED, Compose([Resize((32, 32)), RandomFlip(), norm]))
    test = Streets(16, 5000, Compose([Resize((32, 32)), norm]))
    loader = DataLoader(train, BATCH, shuffle=True, drop_last=True)
    model = Fcn()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.PolynomialLR(opt, STEPS + 2, power=0.9)
    model.train()
    for step, (images, masks) in enumerate(loader):
        losses = criterion(model(images), masks)
        loss = sum(losses.values())
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        print(f"step {step} loss {loss.item():.4f} " + " ".join(f"{k} {v.item():.4f}" for k, v in losses.items()))
    iou = evaluate(model, DataLoader(test, BATCH))
    print("iou " + " ".join(f"{v:.3f}" for v in iou.tolist()) + f" mean {iou.mean().item():.3f}")
    with tempfile.TemporaryDirectory() as d:
        torch.save({"model": model.state_dict(), "sched": sched.state_dict()}, os.path.join(d, "fcn.pt"))


if __name__ == "__main__":
    main()
